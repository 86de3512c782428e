package node

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/desired"
)

// FromFlex makes a document of the published configuration of AKS Flex Node, in its
// first shape or the present one. What has no place in a document is noted by its
// path; the document may be one that berth refuses, which is said when it is read.
func FromFlex(text []byte, secrets SecretLocation) (*v1alpha1.NodeConfig, []desired.FieldNote, error) {
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, nil, refusedFlex(invalid(nil, unreadable(text, err)))
	}
	if _, ok := tree["azure"]; !ok {
		return nil, nil, refusedFlex(field.Required(field.NewPath("azure"), "a configuration of AKS Flex Node has it"))
	}
	f := &flex{tree: tree, out: fresh(), secrets: secrets}
	f.cluster()
	f.identity()
	f.components()
	f.node()
	f.rest("", f.tree)
	if len(f.errs) > 0 {
		return nil, nil, refusedFlex(f.errs...)
	}
	slices.SortFunc(f.notes, func(a, b desired.FieldNote) int { return cmp.Compare(a.Path, b.Path) })
	return f.out, f.notes, nil
}

func refusedFlex(errs ...*field.Error) error {
	return &DocumentError{Errors: errs, kind: "configuration of AKS Flex Node"}
}

// unreadable says why a text is no JSON object, and where, if it is no JSON.
func unreadable(text []byte, err error) string {
	s, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return err.Error()
	}
	return fmt.Sprintf("line %d: not JSON: %v", 1+bytes.Count(text[:min(int(s.Offset), len(text))], []byte("\n")), err)
}

// flex takes a configuration apart: what is taken is gone from the tree.
type flex struct {
	tree    map[string]any
	out     *v1alpha1.NodeConfig
	secrets SecretLocation
	notes   []desired.FieldNote
	errs    field.ErrorList
}

// take removes the value at a path, and the first of several paths that has one.
func take[T any](f *flex, paths ...string) (out T) {
	for _, p := range slices.Backward(paths) {
		names := strings.Split(p, ".")
		at := f.tree
		for _, n := range names[:len(names)-1] {
			at, _ = at[n].(map[string]any)
		}
		last := names[len(names)-1]
		v, there := at[last]
		if !there {
			continue
		}
		delete(at, last)
		value, ok := v.(T)
		if !ok {
			f.errs = append(f.errs, field.TypeInvalid(field.NewPath(p), field.OmitValueType{}, fmt.Sprintf("expected %T, got %T", out, v)))
			continue
		}
		out = value
	}
	return out
}

// number is a whole one, as the published agent reads it into an int.
func (f *flex) number(path string) int32 {
	v := take[float64](f, path)
	if n := int32(v); float64(n) == v {
		return n
	}
	f.errs = append(f.errs, invalid(field.NewPath(path), "expected a whole number"))
	return 0
}

func (f *flex) has(path string) bool {
	at := f.tree
	names := strings.Split(path, ".")
	for _, n := range names[:len(names)-1] {
		at, _ = at[n].(map[string]any)
	}
	_, ok := at[names[len(names)-1]].(map[string]any)
	return ok
}

func (f *flex) note(path, reason string) {
	f.notes = append(f.notes, desired.FieldNote{Path: path, Reason: reason})
}

func (f *flex) cluster() {
	c := &f.out.Cluster
	c.ResourceID, c.Location = take[string](f, "azure.targetCluster.resourceId"), take[string](f, "azure.targetCluster.location")
	c.Server = take[string](f, "node.kubelet.serverURL")
	if name := take[string](f, "node.kubelet.clusterFQDN"); name != "" {
		c.Server = "https://" + name + ":443"
	}
	if text := take[string](f, "node.kubelet.caCertData"); text != "" {
		ca, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			f.errs = append(f.errs, invalid(field.NewPath("node", "kubelet", "caCertData"), err.Error()))
		}
		c.CA = string(ca)
	}
}

// identity: a token beside an identity of Azure was for kubelet alone, and goes
// before it.
func (f *flex) identity() {
	tenant, subscription := cmp.Or(take[string](f, "azure.tenantId"), take[string](f, "azure.arc.tenantId")), take[string](f, "azure.subscriptionId")
	i := &f.out.Identity
	f.clouds()
	switch {
	case f.has("azure.bootstrapToken"):
		*i = f.secrets.bootstrapToken(take[string](f, "azure.bootstrapToken.token"))
		if !f.secrets.Inline {
			f.note("azure.bootstrapToken.token", "put it into "+i.BootstrapToken.TokenFile+", mode 0600")
		}
	case f.has("azure.managedIdentity"):
		i.ManagedIdentity = &v1alpha1.ManagedIdentity{ClientID: take[string](f, "azure.managedIdentity.clientId")}
	case f.arcWanted():
		i.Arc = f.arc(tenant, subscription)
	case f.has("azure.servicePrincipal"):
		i.ServicePrincipal = f.application(tenant)
	default:
		i.AzureCLI = &v1alpha1.AzureCLI{TenantID: tenant}
	}
	if s := i.ServicePrincipal; tenant != "" && (i.BootstrapToken != nil || i.ManagedIdentity != nil || s != nil && s.TenantID != tenant) {
		f.note("azure.tenantId", "nothing asks for it beside this identity")
	}
	if subscription != "" && i.Arc == nil {
		f.note("azure.subscriptionId", "the resource id of the cluster has its own, and nothing else is registered")
	}
	if azureIdentity(f.out) == nil && f.out.Azure != (v1alpha1.Azure{}) {
		f.out.Azure = v1alpha1.Azure{}
		f.note("azure.cloud", "the identity is none of Azure: nothing asks its services")
	}
}

// azureClouds are the services of a cloud by the words that the published program knows.
//
// Source: github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud.
var azureClouds = map[string]v1alpha1.Azure{
	"azurepubliccloud": {}, "azurecloud": {}, "azurepublic": {}, "public": {}, "": {},
	"azureusgovernmentcloud": usGovernment, "azureusgovernment": usGovernment, "azuregovernmentcloud": usGovernment,
	"azurechinacloud": china, "azurechina": china,
}

var (
	usGovernment = v1alpha1.Azure{Authority: "https://login.microsoftonline.us", ResourceManager: "https://management.usgovcloudapi.net"}
	china        = v1alpha1.Azure{Authority: "https://login.chinacloudapi.cn", ResourceManager: "https://management.chinacloudapi.cn"}
)

// clouds are the services of Azure that are asked: those of the cloud, but for what is
// named itself.
func (f *flex) clouds() {
	name := take[string](f, "azure.cloud")
	services, known := azureClouds[strings.ToLower(name)]
	if !known {
		f.note("azure.cloud", name+" is no cloud that berth knows: name azure.authority and azure.resourceManager")
	}
	if url := take[string](f, "azure.resourceManagerEndpoint"); url != "" {
		services.ResourceManager = strings.TrimSuffix(url, "/")
	}
	f.out.Azure = services
}

// arcWanted: the first shape has no word for it, and always means it.
func (f *flex) arcWanted() bool {
	if !f.has("azure.arc") {
		return false
	}
	arc, _ := f.tree["azure"].(map[string]any)["arc"].(map[string]any)
	on, said := arc["enabled"].(bool)
	delete(arc, "enabled")
	return on || !said
}

func (f *flex) arc(tenant, subscription string) *v1alpha1.Arc {
	a := &v1alpha1.Arc{TenantID: tenant, SubscriptionID: subscription,
		MachineName: take[string](f, "azure.arc.machineName"), ResourceGroup: take[string](f, "azure.arc.resourceGroup"),
		Location: take[string](f, "azure.arc.location")}
	for key, v := range take[map[string]any](f, "azure.arc.tags") {
		if a.Tags == nil {
			a.Tags = map[string]string{}
		}
		a.Tags[key] = fmt.Sprint(v)
	}
	// The published program connects each machine that is not connected, whoever does it.
	a.Registration = &v1alpha1.ArcRegistration{AssignRole: take[bool](f, "azure.arc.autoRoleAssignment")}
	f.registrar(a.Registration, tenant)
	return a
}

// registrar: beside Arc, the application is who registers the machine; without one it is
// the login of the Azure CLI.
func (f *flex) registrar(r *v1alpha1.ArcRegistration, tenant string) {
	if !f.has("azure.servicePrincipal") {
		r.AzureCLI = &v1alpha1.AzureCLI{TenantID: tenant}
		return
	}
	r.ServicePrincipal = f.application(tenant)
}

// application is of the tenant of the machine unless it says itself of which.
func (f *flex) application(tenant string) *v1alpha1.ServicePrincipal {
	s := &v1alpha1.ServicePrincipal{TenantID: cmp.Or(take[string](f, "azure.servicePrincipal.tenantId"), tenant), ClientID: take[string](f, "azure.servicePrincipal.clientId")}
	secret := take[string](f, "azure.servicePrincipal.clientSecret")
	if f.secrets.Inline {
		s.ClientSecret, f.out.Identity.AllowInline = v1alpha1.Secret(secret), true
	} else {
		s.ClientSecretFile = f.secrets.Dir + "/client-secret"
		f.note("azure.servicePrincipal.clientSecret", "put it into "+s.ClientSecretFile+", mode 0600")
	}
	return s
}

func (f *flex) components() {
	c := &f.out.Components
	c.Kubernetes.Version = take[string](f, "components.kubernetes", "kubernetes.version")
	c.Containerd.Version = take[string](f, "components.containerd", "containerd.version")
	c.Runc.Version = take[string](f, "components.runc", "runc.version")
	c.CNI.Version = take[string](f, "networking.cniVersion", "cni.version")
	f.sources(c)
	c.SandboxImage = take[string](f, "components.sandboxImage", "containerd.pauseImage")
	if dns := take[string](f, "networking.dnsServiceIP", "node.kubelet.dnsServiceIP"); dns != "" {
		f.out.Networking.ClusterDNS = []string{dns}
	}
}

// sources are where the first shape has programs come from.
func (f *flex) sources(c *v1alpha1.Components) {
	if template := take[string](f, "kubernetes.urlTemplate"); template != "" {
		if c.Kubernetes.Version == "" || strings.Count(template, "%s") != 2 {
			f.note("kubernetes.urlTemplate", "it is a URL only with %s for the version and %s for the architecture, and with a version: name components.kubernetes.urls")
		} else {
			v := strings.TrimPrefix(c.Kubernetes.Version, "v")
			c.Kubernetes.URLs = []string{strings.Replace(strings.Replace(template, "%s", v, 1), "%s", runtime.GOARCH, 1)}
		}
	}
	if url := take[string](f, "runc.url"); url != "" {
		if c.Runc.Version == "" {
			f.note("runc.url", "berth takes it only with runc.version, by which it knows whether it is there")
		} else {
			c.Runc.URLs = []string{url}
		}
	}
}

func (f *flex) node() {
	n := &f.out.Node
	n.Name = take[string](f, "agent.nodeName")
	n.NodeIP = take[string](f, "node.kubelet.nodeIP")
	n.MaxPods = f.number("node.maxPods")
	n.Labels = texts(take[map[string]any](f, "node.labels"))
	n.KubeReserved = texts(take[map[string]any](f, "node.kubelet.kubeReserved"))
	for i, t := range take[[]any](f, "node.taints") {
		list, ok := desired.ParseTaints(fmt.Sprint(t))
		if !ok || len(list) != 1 {
			f.errs = append(f.errs, invalid(field.NewPath("node", "taints").Index(i), "expected key=value:effect"))
			continue
		}
		n.Taints = append(n.Taints, v1alpha1.Taint{Key: list[0].Key, Value: list[0].Value, Effect: v1alpha1.TaintEffect(list[0].Effect)})
	}
	f.kubelet()
}

// kubelet are the settings that are kubelet's own words.
func (f *flex) kubelet() {
	config := map[string]any{}
	if m := take[map[string]any](f, "node.kubelet.evictionHard"); len(m) > 0 {
		config["evictionHard"] = m
	}
	for from, to := range map[string]string{"imageGCHighThreshold": "imageGCHighThresholdPercent", "imageGCLowThreshold": "imageGCLowThresholdPercent"} {
		if n := take[float64](f, "node.kubelet."+from); n > 0 {
			config[to] = n
		}
	}
	if len(config) == 0 {
		return
	}
	b, err := json.Marshal(config)
	if err != nil {
		f.errs = append(f.errs, invalid(field.NewPath("node", "kubelet"), err.Error()))
	}
	f.out.Node.KubeletConfig = b
}

func texts(m map[string]any) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := map[string]string{}
	for k, v := range m {
		out[k] = fmt.Sprint(v)
	}
	return out
}

// rest notes what nobody took.
func (f *flex) rest(at string, tree map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		path := strings.TrimPrefix(at+"."+name, ".")
		if below, ok := tree[name].(map[string]any); ok {
			f.rest(path, below)
			continue
		}
		f.note(path, "it has no place in a NodeConfig")
	}
}
