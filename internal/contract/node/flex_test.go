package node

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
)

const flexCluster = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/one"

// The present shape with a token is a document that is taken.
func TestFromFlex(t *testing.T) {
	text := fmt.Sprintf(`{"azure": {"subscriptionId": "00000000-0000-0000-0000-000000000001", "targetCluster": {"resourceId": %q, "location": "westeurope"},
		"bootstrapToken": {"token": "abcdef.0123456789abcdef"}, "cloud": "AzurePublicCloud"},
		"agent": {"nodeName": "edge-7", "logLevel": "info"}, "components": {"kubernetes": "1.36.3", "runc": "1.4.3"},
		"networking": {"dnsServiceIP": "10.0.0.10", "cniVersion": "1.9.1"},
		"node": {"maxPods": 40, "labels": {"a.b/c": "d"}, "taints": ["edge=true:NoSchedule"],
			"kubelet": {"clusterFQDN": "api.example", "caCertData": %q, "nodeIP": "10.1.0.7", "imageGCHighThreshold": 80, "verbosity": 2}}}`,
		flexCluster, base64.StdEncoding.EncodeToString(testdata(t, "ca.pem")))
	c, notes, err := FromFlex([]byte(text), SecretLocation{Dir: "/etc/berth"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := Text(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(out); err != nil || strings.Contains(string(out), "abcdef") {
		t.Errorf("%v\n%s", err, out)
	}
	want := `cluster: {server: "https://api.example:443", resourceId: ` + flexCluster + `, location: westeurope}
identity: {bootstrapToken: {tokenFile: /etc/berth/token}}
components: {kubernetes: {version: 1.36.3}, runc: {version: 1.4.3}, cni: {version: 1.9.1}}
networking: {clusterDNS: [10.0.0.10]}
node: {name: edge-7, maxPods: 40, nodeIP: 10.1.0.7, labels: {a.b/c: d}, taints: [{key: edge, value: "true", effect: NoSchedule}], kubeletConfig: {imageGCHighThresholdPercent: 80}}
`
	read, err := read([]byte("apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\n" + want))
	if err != nil {
		t.Fatal(err)
	}
	c.Cluster.CA = ""
	if diff := cmp.Diff(read.Config, c); diff != "" {
		t.Error(diff)
	}
	var paths []string
	for _, n := range notes {
		paths = append(paths, n.Path)
	}
	if diff := cmp.Diff([]string{"agent.logLevel", "azure.bootstrapToken.token", "azure.subscriptionId", "node.kubelet.verbosity"}, paths); diff != "" {
		t.Error(diff)
	}
}

func TestFromFlexWholeNumbers(t *testing.T) {
	for _, n := range []string{"110.5", "1e12", "-1e12"} {
		_, _, err := FromFlex(fmt.Appendf(nil, `{"azure": {"arc": {}, "targetCluster": {"resourceId": %q, "location": "westeurope"}}, "kubernetes": {"version": "1.32.7"}, "node": {"maxPods": %s}}`, flexCluster, n), SecretLocation{Dir: "/etc/berth"})
		if err == nil || !strings.Contains(err.Error(), "node.maxPods") || !strings.Contains(err.Error(), "whole number") {
			t.Errorf("%s: %v", n, err)
		}
	}
}

// The first shape: an Azure identity, versions in fields of their own, dots in keys.
func TestFromFirstFlex(t *testing.T) {
	for name, c := range map[string]struct{ azure, want string }{
		"arc":               {`"arc": {"location": "westeurope", "machineName": "m", "tags": {"a": "b"}}`, "identity.arc"},
		"service principal": {`"servicePrincipal": {"tenantId": "00000000-0000-0000-0000-000000000001", "clientId": "00000000-0000-0000-0000-000000000002", "clientSecret": "SECRETSECRET"}`, "identity.servicePrincipal"},
		"managed identity":  {`"managedIdentity": {}, "arc": {"enabled": false}`, "identity.managedIdentity"},
		"cli":               {`"arc": {"enabled": false}`, "identity.azureCLI"},
	} {
		text := fmt.Sprintf(`{"azure": {"tenantId": "00000000-0000-0000-0000-000000000003", "targetCluster": {"resourceId": %q}, %s},
			"kubernetes": {"version": "1.32.7", "urlTemplate": "https://x/%%s/%%s"}, "containerd": {"version": "1.7.20", "pauseImage": "mcr.microsoft.com/pause:3.6"},
			"node": {"kubelet": {"evictionHard": {"memory.available": "5%%"}, "kubeReserved": {"cpu": "100m"}}}}`, flexCluster, c.azure)
		got, notes, err := FromFlex([]byte(text), SecretLocation{Dir: "/etc/berth"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := Text(got)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Decode(out)
		if err != nil || "identity."+identityName(got) != c.want || strings.Contains(string(out)+fmt.Sprint(notes), "SECRET") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if string(got.Node.KubeletConfig) != `{"evictionHard":{"memory.available":"5%"}}` || got.Components.Kubernetes.Version != "1.32.7" {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// Beside Azure Arc an application is who registers the machine, and not the machine.
func TestFromFlexRegisters(t *testing.T) {
	const sp = `"servicePrincipal": {"tenantId": "00000000-0000-0000-0000-000000000001", "clientId": "00000000-0000-0000-0000-000000000002", "clientSecret": "SECRETSECRET"}`
	for text, want := range map[string]v1alpha1.ArcRegistration{
		`"arc": {"machineName": "m"}, ` + sp: {ServicePrincipal: &v1alpha1.ServicePrincipal{TenantID: "00000000-0000-0000-0000-000000000001",
			ClientID: "00000000-0000-0000-0000-000000000002", ClientSecretFile: "/etc/berth/client-secret"}},
		`"arc": {}, "servicePrincipal": {"clientId": "00000000-0000-0000-0000-000000000002", "clientSecret": "SECRETSECRET"}`: {ServicePrincipal: &v1alpha1.ServicePrincipal{
			TenantID: "00000000-0000-0000-0000-000000000003", ClientID: "00000000-0000-0000-0000-000000000002", ClientSecretFile: "/etc/berth/client-secret"}},
		`"arc": {"autoRoleAssignment": true}`: {AzureCLI: &v1alpha1.AzureCLI{TenantID: "00000000-0000-0000-0000-000000000003"}, AssignRole: true},
		`"arc": {}`:                           {AzureCLI: &v1alpha1.AzureCLI{TenantID: "00000000-0000-0000-0000-000000000003"}},
		`"arc": {"enabled": true}`:            {AzureCLI: &v1alpha1.AzureCLI{TenantID: "00000000-0000-0000-0000-000000000003"}},
	} {
		got, notes, err := FromFlex(fmt.Appendf(nil, `{"azure": {"tenantId": "00000000-0000-0000-0000-000000000003", "targetCluster": {"resourceId": %q, "location": "westeurope"}, %s},
			"kubernetes": {"version": "1.32.7"}}`, flexCluster, text), SecretLocation{Dir: "/etc/berth"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got.Identity.Arc.Registration); diff != "" {
			t.Error(diff)
		}
		out, err := Text(got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(out); err != nil || strings.Contains(fmt.Sprint(notes), "autoRoleAssignment") || strings.Contains(string(out)+fmt.Sprint(notes), "SECRETSECRET") {
			t.Errorf("%v\n%s\n%v", err, out, notes)
		}
	}
}

// Where services and programs come from is taken, or a note says why it is not.
func TestFromFlexPaths(t *testing.T) {
	const cli, token = `"azure": {%s "targetCluster": {"resourceId": "x"}}, `, `"azure": {%s "tenantId": "t", "bootstrapToken": {"token": "abcdef.0123456789abcdef"}}, `
	k8s := "https://mirror/v1.32.7/" + runtime.GOARCH + ".tar.gz"
	for name, c := range map[string]struct {
		azure, rest string
		want        v1alpha1.Azure
		urls, runc  []string
		notes       []string
	}{
		"public":     {fmt.Sprintf(cli, `"cloud": "AzurePublicCloud",`), `"kubernetes": {"version": "v1.32.7", "urlTemplate": "https://mirror/v%s/%s.tar.gz"}`, v1alpha1.Azure{}, []string{k8s}, nil, nil},
		"government": {fmt.Sprintf(cli, `"cloud": "AzureGovernmentCloud",`), `"runc": {"version": "1.4.3", "url": "https://mirror/runc"}`, usGovernment, nil, []string{"https://mirror/runc"}, nil},
		"china, and a manager of its own": {fmt.Sprintf(cli, `"cloud": "AzureChinaCloud", "resourceManagerEndpoint": "https://arm.example/",`), `"runc": {"url": "https://mirror/runc"}`,
			v1alpha1.Azure{Authority: china.Authority, ResourceManager: "https://arm.example"}, nil, nil, []string{"runc.url"}},
		"unknown":                    {fmt.Sprintf(cli, `"cloud": "AzureMoon",`), `"kubernetes": {"urlTemplate": "https://mirror/%s/%s"}`, v1alpha1.Azure{}, nil, nil, []string{"azure.cloud", "kubernetes.urlTemplate"}},
		"a template of another form": {fmt.Sprintf(cli, ``), `"kubernetes": {"version": "1.32.7", "urlTemplate": "https://mirror/k8s"}`, v1alpha1.Azure{}, nil, nil, []string{"kubernetes.urlTemplate"}},
		"beside a token":             {fmt.Sprintf(token, `"subscriptionId": "s", "cloud": "AzureChinaCloud",`), `"agent": {}`, v1alpha1.Azure{}, nil, nil, []string{"azure.cloud", "azure.subscriptionId", "azure.tenantId"}},
	} {
		got, notes, err := FromFlex([]byte("{"+c.azure+c.rest+"}"), SecretLocation{Inline: true})
		if err != nil {
			t.Fatal(name, err)
		}
		if got.Azure != c.want || !slices.Equal(got.Components.Kubernetes.URLs, c.urls) || !slices.Equal(got.Components.Runc.URLs, c.runc) {
			t.Errorf("%s: %+v, %q, %q", name, got.Azure, got.Components.Kubernetes.URLs, got.Components.Runc.URLs)
		}
		var paths []string
		for _, n := range notes {
			paths = append(paths, n.Path)
		}
		if !slices.Equal(paths, c.notes) {
			t.Errorf("%s: noted %q, want %q", name, paths, c.notes)
		}
	}
}

// TestFromFlexSaysWhatItRefuses: nobody has handed it a NodeConfig.
func TestFromFlexSaysWhatItRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"azure\": {},\n}": "configuration of AKS Flex Node refused: Invalid value: line 3: not JSON: invalid character '}' looking for beginning of object key string",
		"{}":                     "configuration of AKS Flex Node refused: azure: Required value: a configuration of AKS Flex Node has it",
	} {
		if _, _, err := FromFlex([]byte(text), SecretLocation{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFromFlexRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "unmarshal", `{}`: "azure", `{"azure": {"tenantId": 7}}`: "azure.tenantId",
		`{"azure": {}, "node": {"taints": ["x"]}}`: "node.taints[0]", `{"azure": {}, "node": {"kubelet": {"caCertData": "%"}}}`: "node.kubelet.caCertData",
	} {
		if _, _, err := FromFlex([]byte(text), SecretLocation{Dir: "/etc/berth"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzFromFlex(f *testing.F) {
	f.Add([]byte(`{"azure": {"arc": {}}, "node": {"taints": ["a=b:NoSchedule"], "kubelet": 7}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, _, err := FromFlex(text, SecretLocation{Inline: true})
		if err != nil {
			return
		}
		if _, err := Text(c); err != nil {
			t.Error(err)
		}
	})
}
