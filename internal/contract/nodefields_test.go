package contract

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
)

// What NodeConfigs need of each other field to speak of one.
const (
	azureCluster = "{cluster.resourceId: /subscriptions/11111111-0000-0000-0000-000000000001/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/one, cluster.location: westeurope, "
	tenantA      = "aaaaaaaa-0000-0000-0000-000000000001"
	tenantB      = "bbbbbbbb-0000-0000-0000-000000000002"
	principal    = "{identity.bootstrapToken: null, identity.servicePrincipal: {tenantId: " + tenantA + ", clientId: " + tenantA + ", clientSecretFile: /etc/berth/secret}}"
	registering  = azureCluster + "identity.bootstrapToken: null, identity.arc: {tenantId: " + tenantA + ", registration: {servicePrincipal: {tenantId: " + tenantA + ", clientId: " + tenantA + ", clientSecretFile: /etc/berth/secret}}}}"
	byCLI        = azureCluster + "identity.bootstrapToken: null, identity.arc: {tenantId: " + tenantA + ", registration: {azureCLI: {tenantId: " + tenantA + "}}}}"
	inline       = "{identity.bootstrapToken: {token: abcdef.0123456789abcdef}}"
	digestA      = "4a7d8e9f00112233445566778899aabbccddeeff00112233445566778899aabb"
	digestB      = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

// fieldCase is a field with two values in a document that is otherwise the same; null is
// a field that is not there.
type fieldCase struct {
	path string
	// with are other fields of both documents, by path.
	with       string
	one, other string
	// refused: the field is about what a document may say, and the other one is refused.
	refused bool
}

var fieldCases = []fieldCase{
	{"apiVersion", "", "berth.dev/v1alpha1", "berth.dev/v9", true},
	{"kind", "", "NodeConfig", "NodeConfigs", true},
	{"cluster.server", "", "https://10.0.0.1:6443", "https://10.0.0.2:6443", false},
	{"cluster.caFile", "", "/etc/berth/ca.pem", "/etc/berth/other.pem", false},
	{"cluster.ca", "{cluster.caFile: null}", "CA", "OTHERCA", false},
	{"cluster.caCertHash", "{cluster.caFile: null}", "sha256:" + digestA, "sha256:" + digestB, false},
	{"cluster.resourceId", "", "null", "/subscriptions/11111111-0000-0000-0000-000000000001/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/one", false},
	{"cluster.location", byCLI, "westeurope", "northeurope", false},
	{"identity.direct", "{identity.bootstrapToken: null, identity.managedIdentity: {}}", "false", "true", false},
	{"identity.allowInline", inline, "true", "null", true},
	{"identity.bootstrapToken.tokenFile", "", "/etc/berth/token", "/etc/berth/token-2", false},
	{"identity.bootstrapToken.tokenEnv", "{identity.bootstrapToken.tokenFile: null}", "ONE", "OTHER", false},
	{"identity.bootstrapToken.token", "{identity.bootstrapToken.tokenFile: null, identity.allowInline: true}", "abcdef.0123456789abcdef", "abcdef.0123456789abcde0", false},
	{"identity.clientCertificate.certFile", "{identity.bootstrapToken: null, identity.clientCertificate: {keyFile: /etc/berth/node.key}}", "/etc/berth/node.pem", "/etc/berth/node-2.pem", false},
	{"identity.clientCertificate.keyFile", "{identity.bootstrapToken: null, identity.clientCertificate: {certFile: /etc/berth/node.pem}}", "/etc/berth/node.key", "/etc/berth/node-2.key", false},
	{"identity.managedIdentity.clientId", "{identity.bootstrapToken: null}", tenantA, tenantB, false},
	{"identity.managedIdentity.tenantId", "{identity.bootstrapToken: null}", tenantA, tenantB, false},
	{"identity.arc.subscriptionId", registering, tenantA, tenantB, false},
	{"identity.arc.tenantId", "{identity.bootstrapToken: null}", tenantA, tenantB, false},
	{"identity.arc.machineName", registering, "one", "other", false},
	{"identity.arc.resourceGroup", registering, "one", "other", false},
	{"identity.arc.location", registering, "westeurope", "northeurope", false},
	{"identity.arc.tags", registering, "{site: north}", "{site: south}", false},
	{"identity.arc.agent.urls", registering + "|{identity.arc.agent.sha256: " + digestA + "}", "[\"https://a.example/a.deb\"]", "[\"https://b.example/a.deb\"]", false},
	{"identity.arc.agent.sha256", registering + "|{identity.arc.agent.urls: [\"https://a.example/a.deb\"]}", digestA, digestB, false},
	{"identity.arc.registration.servicePrincipal.tenantId", registering, tenantA, tenantB, false},
	{"identity.arc.registration.servicePrincipal.clientId", registering, tenantA, tenantB, false},
	{"identity.arc.registration.servicePrincipal.clientSecretFile", registering, "/etc/berth/secret", "/etc/berth/other", false},
	{"identity.arc.registration.servicePrincipal.clientSecretEnv", registering + "|{identity.arc.registration.servicePrincipal.clientSecretFile: null}", "ONE", "OTHER", false},
	{"identity.arc.registration.servicePrincipal.clientSecret", registering + "|{identity.arc.registration.servicePrincipal.clientSecretFile: null, identity.allowInline: true}", "one", "other", false},
	{"identity.arc.registration.servicePrincipal.clientCertificateFile", registering + "|{identity.arc.registration.servicePrincipal.clientSecretFile: null}", "/etc/berth/one.pem", "/etc/berth/other.pem", false},
	{"identity.arc.registration.azureCLI.tenantId", byCLI, tenantA, tenantB, false},
	{"identity.arc.registration.assignRole", registering, "false", "true", false},
	{"identity.servicePrincipal.tenantId", principal, tenantA, tenantB, false},
	{"identity.servicePrincipal.clientId", principal, tenantA, tenantB, false},
	{"identity.servicePrincipal.clientSecretFile", principal, "/etc/berth/secret", "/etc/berth/other", false},
	{"identity.servicePrincipal.clientSecretEnv", principal + "|{identity.servicePrincipal.clientSecretFile: null}", "ONE", "OTHER", false},
	{"identity.servicePrincipal.clientSecret", principal + "|{identity.servicePrincipal.clientSecretFile: null, identity.allowInline: true}", "one", "other", false},
	{"identity.servicePrincipal.clientCertificateFile", principal + "|{identity.servicePrincipal.clientSecretFile: null}", "/etc/berth/one.pem", "/etc/berth/other.pem", false},
	{"identity.azureCLI.tenantId", "{identity.bootstrapToken: null}", tenantA, tenantB, false},
	{"components.kubernetes.version", "", "1.36.3", "1.36.2", false},
	{"components.kubernetes.urls", "", "[\"https://a.example/k.tar.gz\"]", "[\"https://b.example/k.tar.gz\"]", false},
	{"components.kubernetes.sha256", "{components.kubernetes.urls: [\"https://a.example/k.tar.gz\"]}", digestA, digestB, false},
	{"components.containerd.version", "", "2.1.4", "2.1.5", false},
	{"components.containerd.urls", "{components.containerd.version: 2.1.4}", "[\"https://a.example/c.tar.gz\"]", "[\"https://b.example/c.tar.gz\"]", false},
	{"components.containerd.sha256", "{components.containerd.version: 2.1.4, components.containerd.urls: [\"https://a.example/c.tar.gz\"]}", digestA, digestB, false},
	{"components.runc.version", "", "1.4.3", "1.4.2", false},
	{"components.runc.urls", "{components.runc.version: 1.4.3}", "[\"https://a.example/runc\"]", "[\"https://b.example/runc\"]", false},
	{"components.runc.sha256", "{components.runc.version: 1.4.3, components.runc.urls: [\"https://a.example/runc\"]}", digestA, digestB, false},
	{"components.cni.version", "", "1.9.1", "1.9.0", false},
	{"components.cni.urls", "{components.cni.version: 1.9.1}", "[\"https://a.example/cni.tgz\"]", "[\"https://b.example/cni.tgz\"]", false},
	{"components.cni.sha256", "{components.cni.version: 1.9.1, components.cni.urls: [\"https://a.example/cni.tgz\"]}", digestA, digestB, false},
	{"components.sandboxImage", "", "registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.9", false},
	{"node.name", "", "one", "other", false},
	{"node.labels", "", "{site: north}", "{site: south}", false},
	{"node.taints.key", "{node.taints: [{effect: NoSchedule}]}", "one", "other", false},
	{"node.taints.value", "{node.taints: [{key: edge, effect: NoSchedule}]}", "one", "other", false},
	{"node.taints.effect", "{node.taints: [{key: edge}]}", "NoSchedule", "NoExecute", false},
	{"node.maxPods", "", "40", "41", false},
	{"node.nodeIP", "", "10.1.0.7", "10.1.0.8", false},
	{"node.kubeReserved", "", "{cpu: 100m}", "{cpu: 200m}", false},
	{"node.systemReserved", "", "{cpu: 100m}", "{cpu: 200m}", false},
	{"node.kubeletConfig", "", "{readOnlyPort: 1}", "{readOnlyPort: 2}", false},
	{"node.drain.timeout", "", "1m", "2m", false},
	{"networking.mode", "", "cluster", "bridge", false},
	{"networking.podCIDRs", "{networking.mode: bridge}", "[10.244.1.0/24]", "[10.244.2.0/24]", false},
	{"networking.clusterDNS", "", "[10.96.0.10]", "[10.96.0.11]", false},
	{"networking.clusterDomain", "", "a.example", "b.example", false},
	{"artifacts.mirrors.prefix", "{artifacts.mirrors: [{url: \"https://mirror.example/\"}]}", "https://github.com/", "https://dl.k8s.io/", false},
	{"artifacts.mirrors.url", "{artifacts.mirrors: [{prefix: \"https://github.com/\"}]}", "https://a.example/", "https://b.example/", false},
	{"artifacts.registryMirrors.registry", "{artifacts.registryMirrors: [{url: \"https://mirror.example\"}]}", "docker.io", "quay.io", false},
	{"artifacts.registryMirrors.url", "{artifacts.registryMirrors: [{registry: docker.io}]}", "https://a.example", "https://b.example", false},
	{"artifacts.requireDigests", "", "false", "true", false},
	{"proxy.http", "", "http://a.example:3128", "http://b.example:3128", false},
	{"proxy.https", "", "http://a.example:3128", "http://b.example:3128", false},
	{"proxy.noProxy", "{proxy.http: \"http://a.example:3128\"}", "[.a.example]", "[.b.example]", false},
	{"proxy.allowInline", "{proxy.https: \"http://me:secret@a.example:3128\"}", "true", "null", true},
	{"trust.caFiles", "", "[/etc/berth/ca.pem]", "[/etc/berth/other.pem]", false},
	{"trust.cas", "", "[CA]", "[OTHERCA]", false},
	{"agent.keep", "", "false", "true", false},
	{"azure.authority", principal, "https://a.example", "https://b.example", false},
	{"azure.resourceManager", azureCluster + "cluster.server: null, cluster.caFile: null, identity.bootstrapToken: null, identity.managedIdentity: {}}", "https://a.example", "https://b.example", false},
	{"azure.serverId", "{identity.bootstrapToken: null, identity.managedIdentity: {}}", tenantA, tenantB, false},
}

// TestEveryFieldHasAnEffect: no field of a NodeConfig is taken and forgotten. Each is in
// the table, and two values of it ask for two things.
func TestEveryFieldHasAnEffect(t *testing.T) {
	var have []string
	for _, c := range fieldCases {
		have = append(have, c.path)
		t.Run(c.path, func(t *testing.T) {
			one, err := asked(t, c.document(t, c.one))
			if err != nil {
				t.Fatal(err)
			}
			other, err := asked(t, c.document(t, c.other))
			if (err != nil) != c.refused {
				t.Errorf("refused: %v, want %t", err, c.refused)
			}
			if one == other {
				t.Error("it has no effect")
			}
		})
	}
	slices.Sort(have)
	want := fieldsOf(reflect.TypeFor[v1alpha1.NodeConfig](), "")
	slices.Sort(want)
	for _, path := range want {
		if !slices.Contains(have, path) {
			t.Errorf("%s: nothing proves that it has an effect", path)
		}
	}
	for _, path := range have {
		if !slices.Contains(want, path) {
			t.Errorf("%s: there is no such field", path)
		}
	}
}

// fieldsOf are the paths of the fields of a type that hold no other fields.
func fieldsOf(typ reflect.Type, at string) (paths []string) {
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			paths = append(paths, fieldsOf(inner, at+name+".")...)
		} else {
			paths = append(paths, at+name)
		}
	}
	return paths
}

// document is the smallest one with a value of the field.
func (c *fieldCase) document(t *testing.T, value string) []byte {
	t.Helper()
	var doc map[string]any
	parse(t, "{apiVersion: berth.dev/v1alpha1, kind: NodeConfig, cluster: {server: \"https://10.0.0.1:6443\", caFile: /etc/berth/ca.pem}, "+
		"identity: {bootstrapToken: {tokenFile: /etc/berth/token}}, components: {kubernetes: {version: 1.36.3}}}", &doc)
	for part := range strings.SplitSeq(c.with, "|") {
		var with map[string]any
		parse(t, part, &with)
		for path, v := range with {
			put(doc, strings.Split(path, "."), v)
		}
	}
	var v any
	parse(t, strings.NewReplacer("OTHERCA", pemText(t, "client.pem"), "CA", pemText(t, "ca.pem")).Replace(value), &v)
	put(doc, strings.Split(c.path, "."), v)
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func pemText(t *testing.T, name string) string {
	t.Helper()
	pem, err := os.ReadFile("node/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(string(pem))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// put sets a member of a member; of a list, of its first. nil takes it away.
func put(doc map[string]any, path []string, v any) {
	for ; len(path) > 1; path = path[1:] {
		switch next := doc[path[0]].(type) {
		case map[string]any:
			doc = next
		case []any:
			doc = next[0].(map[string]any)
		default:
			made := map[string]any{}
			doc[path[0]] = made
			if lists[path[0]] {
				doc[path[0]] = []any{made}
			}
			doc = made
		}
	}
	if v == nil {
		delete(doc, path[0])
		return
	}
	doc[path[0]] = v
}

// lists are the members that have a list of objects.
var lists = map[string]bool{"taints": true, "mirrors": true, "registryMirrors": true}

// asked is all that a document asks for of a machine and of a run.
func asked(t *testing.T, text []byte) (string, error) {
	t.Helper()
	c, err := Decode(text)
	if err != nil {
		return "", err
	}
	read := func(name string) []byte {
		b, err := os.ReadFile("node/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ca, node := read("ca.pem"), read("client.pem")
	st, err := c.Translate(component.Facts{Hostname: "edge-7", IPv6: true, ClusterServer: "https://10.0.0.9:443", ClusterCA: ca, Files: map[string][]byte{
		"/etc/berth/ca.pem": ca, "/etc/berth/other.pem": node, "/etc/berth/node.pem": node, "/etc/berth/node-2.pem": node,
	}})
	if err != nil {
		return "", err
	}
	all, err := json.Marshal(map[string]any{"state": st, "partial": st.Partial, "references": ReferencesOf(c), "server": ServerOf(c),
		"kubelet": KubeletOf(c), "keeps": KeepsOf(c), "drain": DrainOf(c), "terms": c.Terms()})
	if err != nil {
		t.Fatal(err)
	}
	return string(all), nil
}
