package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component/azurecluster"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
)

const (
	guidA = "00000000-0000-0000-0000-00000000000a"
	guidB = "00000000-0000-0000-0000-00000000000b"
)

// withIdentity is the smallest document with another identity.
func withIdentity(t testing.TB, i v1alpha1.Identity) *Document {
	t.Helper()
	doc := decoded(t, "minimal.yaml")
	doc.Config.Identity = i
	return doc
}

// The identity asks for a node's certificate, and stands in the bootstrap kubeconfig
// alone.
func TestAzureIdentities(t *testing.T) {
	for name, i := range map[string]v1alpha1.Identity{
		"managedIdentity":  {ManagedIdentity: &v1alpha1.ManagedIdentity{ClientID: guidA, TenantID: guidB}},
		"arc":              {Arc: &v1alpha1.Arc{TenantID: guidB}},
		"servicePrincipal": {ServicePrincipal: &v1alpha1.ServicePrincipal{TenantID: guidB, ClientID: guidA, ClientSecretFile: "/etc/berth/secret"}},
	} {
		st := translated(t, withIdentity(t, i), machineOf(t))
		c := st.Lookup(desired.ClientCertificateID(kubelet.Kubeconfig)).(*desired.ClientCertificate)
		if c.Azure == nil || string(c.Azure.Kind) != name || c.Azure.ServerID != azureidentity.AKS || c.Azure.TenantID != guidB || c.Field != "identity."+name {
			t.Errorf("%s: %+v", name, c)
		}
		k := golden.File(t, st, kubelet.Bootstrap)
		for _, part := range []string{"apiVersion: client.authentication.k8s.io/v1\n", "command: /usr/local/bin/berth", "- node\n      - token", "interactiveMode: Never"} {
			if !strings.Contains(string(k.Content.Data()), part) {
				t.Errorf("%s: no %q in\n%s", name, part, k.Content.Data())
			}
		}
		if k.Life != desired.Managed || k.Mode != 0o600 {
			t.Errorf("%s: %+v", name, k)
		}
		file := golden.File(t, st, azureidentity.Path)
		got, err := azureidentity.Parse(file.Content.Data())
		if err != nil || got != *c.Azure || file.Mode != 0o600 || !file.Content.IsSecret() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if text(t, st) != text(t, translated(t, withIdentity(t, i), furnished(t))) {
			t.Errorf("%s: a second run would find work", name)
		}
	}
}

// With direct kubelet shows the identity's tokens: it has no certificate and asks for none,
// and nothing else finds one missing.
func TestDirectTokens(t *testing.T) {
	for name, i := range map[string]v1alpha1.Identity{
		"managedIdentity":  {Direct: true, ManagedIdentity: &v1alpha1.ManagedIdentity{ClientID: guidA, TenantID: guidB}},
		"servicePrincipal": {Direct: true, ServicePrincipal: &v1alpha1.ServicePrincipal{TenantID: guidB, ClientID: guidA, ClientSecretFile: "/etc/berth/secret"}},
	} {
		st := translated(t, withIdentity(t, i), machineOf(t))
		if st.Lookup(desired.ClientCertificateID(kubelet.Kubeconfig)) != nil || st.Lookup(desired.FileID(kubelet.Bootstrap)) != nil {
			t.Errorf("%s: a certificate is asked for", name)
		}
		k := golden.File(t, st, kubelet.Kubeconfig)
		for _, part := range []string{"command: /usr/local/bin/berth", "- node\n      - token", "name: system:node:"} {
			if !strings.Contains(string(k.Content.Data()), part) {
				t.Errorf("%s: no %q in\n%s", name, part, k.Content.Data())
			}
		}
		script := golden.File(t, st, kubelet.TokenScript)
		if got := string(script.Content.Data()); got != "#!/bin/sh\nexec /usr/local/bin/berth node token\n" || script.Mode != 0o700 {
			t.Errorf("%s: %v %q", name, script.Mode, got)
		}
		if config := string(golden.File(t, st, kubelet.ConfigFile).Content.Data()); !strings.Contains(config, `"rotateCertificates": false`) {
			t.Errorf("%s: kubelet asks for a certificate: %s", name, config)
		}
		flags := ""
		for _, r := range st.Resources {
			if f, ok := r.(*desired.File); ok && strings.HasSuffix(f.Path, "10-tlsbootstrap.conf") {
				flags = string(f.Content.Data())
			}
		}
		if strings.Contains(flags, "bootstrap-kubeconfig") || strings.Contains(flags, "rotate-certificates") || !strings.Contains(flags, "--kubeconfig=") {
			t.Errorf("%s: %s", name, flags)
		}
	}
}

// What is there for the time of the join alone leaves nothing that kubelet could call.
func TestPassingIdentities(t *testing.T) {
	for name, i := range map[string]v1alpha1.Identity{
		"azureCLI":         {AzureCLI: &v1alpha1.AzureCLI{}},
		"servicePrincipal": {ServicePrincipal: &v1alpha1.ServicePrincipal{TenantID: guidB, ClientID: guidA, ClientSecretEnv: "SECRET"}},
	} {
		st := translated(t, withIdentity(t, i), machineOf(t))
		if st.Lookup(desired.FileID(kubelet.Bootstrap)) != nil || st.Lookup(desired.FileID(azureidentity.Path)) != nil {
			t.Errorf("%s stays on the machine", name)
		}
	}
}

// A secret that stands in the document is in the identity's file, and prints nowhere.
func TestInlineClientSecret(t *testing.T) {
	doc := withIdentity(t, v1alpha1.Identity{AllowInline: true, ServicePrincipal: &v1alpha1.ServicePrincipal{TenantID: guidB, ClientID: guidA, ClientSecret: "SECRETSECRET"}})
	doc.Config.Azure.Authority = "https://login.example/"
	doc.Config.Proxy.HTTPS = "http://proxy.example:3128"
	st := translated(t, doc, machineOf(t))
	if strings.Contains(text(t, st), "SECRETSECRET") {
		t.Error("the state shows it")
	}
	got, err := azureidentity.Parse(golden.File(t, st, azureidentity.Path).Content.Data())
	if err != nil || got.ClientSecret != "SECRETSECRET" || got.Authority != "https://login.example" {
		t.Errorf("%+v, %v", got, err)
	}
	c := st.Lookup(desired.ClientCertificateID(kubelet.Kubeconfig)).(*desired.ClientCertificate)
	if c.Via == nil || c.Via.HTTPSProxy != "http://proxy.example:3128" {
		t.Errorf("its token is not asked for by the document's proxy: %+v", c.Via)
	}
}

// Where the machine is registered, the cluster says unless the document does.
func TestArcIsRegistered(t *testing.T) {
	const head = "apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\ncomponents: {kubernetes: {version: 1.36.3}}\ncluster: {resourceId: " + aks + ", location: westeurope}\n"
	doc, err := Decode([]byte(head + "identity: {arc: {registration: {azureCLI: {tenantId: " + guidB + "}, assignRole: true}}}\nazure: {resourceManager: \"https://management.usgovcloudapi.net\"}\ntrust: {caFiles: [/ca]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := doc.References().Arc
	if r == nil || r.SubscriptionID != guidA || r.ResourceGroup != "Edge" || r.Location != "westeurope" || r.Name != "" || r.ClusterID != aks ||
		r.Cloud != "AzureUSGovernment" || r.By.Kind != desired.AzureCLI || r.By.TenantID != guidB || r.Via == nil || r.CAFiles[0] != "/ca" {
		t.Errorf("%+v", r)
	}
	doc, err = Decode([]byte(head + "identity: {arc: {machineName: m, resourceGroup: g, location: l, subscriptionId: " + guidB + ", registration: {servicePrincipal: {tenantId: " + guidA + ", clientId: " + guidB + ", clientSecretFile: /s}}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r = doc.References().Arc
	if r.SubscriptionID != guidB || r.ResourceGroup != "g" || r.Location != "l" || r.Name != "m" || r.ClusterID != "" || r.Cloud != "" || r.By.ClientSecretFile != "/s" || r.By.Validate() != nil {
		t.Errorf("%+v, %+v", r, r.By)
	}
	if doc, err = Decode([]byte(head + "identity: {arc: {}}\n")); err != nil || doc.References().Arc != nil {
		t.Errorf("nobody registers it: %v", err)
	}
}

// What berth does not do for Arc is told of.
func TestArcRegistration(t *testing.T) {
	st := translated(t, withIdentity(t, v1alpha1.Identity{Arc: &v1alpha1.Arc{MachineName: "m", Tags: map[string]string{"a": "b"}}}), machineOf(t))
	if got := strings.Join(st.Unhandled, " "); !strings.Contains(got, "identity.arc.machineName") || !strings.Contains(got, "identity.arc.tags") {
		t.Error(got)
	}
}

const aks = "/subscriptions/" + guidA + "/resourceGroups/Edge/providers/Microsoft.ContainerService/managedClusters/one"

// Azure says how a cluster is reached that is named by its id alone, once.
func TestAzureSaysTheCluster(t *testing.T) {
	doc := withIdentity(t, v1alpha1.Identity{ManagedIdentity: &v1alpha1.ManagedIdentity{}})
	doc.Config.Cluster = v1alpha1.Cluster{ResourceID: aks}
	doc.Config.Trust.CAFiles, doc.Config.Proxy.HTTPS = []string{"/etc/berth/ca.pem"}, "http://proxy.example:3128"
	r := doc.References().Azure
	if r == nil || r.ResourceID != aks || r.Manager != "https://management.azure.com" || r.Identity.Kind != desired.AzureManagedIdentity || r.Via.HTTPSProxy == "" || len(r.CAFiles) != 1 {
		t.Fatalf("%+v", r)
	}
	f := machineOf(t)
	if _, err := Translate(doc, f); err == nil || !strings.Contains(err.Error(), "cluster.resourceId") {
		t.Errorf("nobody has been asked: %v", err)
	}
	f.ClusterServer = "https://one.example:443"
	st := translated(t, doc, f)
	c := st.Lookup(desired.ClientCertificateID(kubelet.Kubeconfig)).(*desired.ClientCertificate)
	if c.Server != "https://one.example:443" || c.CA != string(f.ClusterCA) {
		t.Errorf("%+v", c)
	}
	known, err := azurecluster.Parse(golden.File(t, st, azurecluster.Path).Content.Data())
	if err != nil || known.ResourceID != strings.ToLower(aks) || known.Server != c.Server {
		t.Errorf("%+v, %v", known, err)
	}
	if flags := string(golden.File(t, st, kubelet.FlagsFile).Content.Data()); !strings.Contains(flags, "kubernetes.azure.com/managed=false") {
		t.Error(flags)
	}
	if doc.Config.Cluster.Server != "" {
		t.Error("the document was changed")
	}
}

func TestFilesBesideAzure(t *testing.T) {
	for name, text := range map[string]string{
		"a CA without server": "cluster: {resourceId: " + aks + ", caFile: /ca}\nidentity: {managedIdentity: {}}\n",
		"a token":             "cluster: {resourceId: " + aks + "}\nidentity: {bootstrapToken: {tokenFile: /t}}\n",
	} {
		_, err := Decode([]byte("apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\ncomponents: {kubernetes: {version: 1.36.3}}\n" + text))
		if err == nil || !strings.Contains(err.Error(), "cluster") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Decode([]byte("apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\ncomponents: {kubernetes: {version: 1.36.3}}\ncluster: {resourceId: " + aks + "}\nidentity: {arc: {}}\n")); err != nil {
		t.Error(err)
	}
}

// The package of the agent is where the document and its mirrors say, with its digest.
func TestArcAgent(t *testing.T) {
	const head = "apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\ncomponents: {kubernetes: {version: 1.36.3}}\ncluster: {resourceId: " + aks + ", location: westeurope}\n"
	digest := strings.Repeat("AB", 32)
	for agent, want := range map[string][]string{
		"{urls: [\"https://packages.example/azcmagent.deb\"], sha256: " + digest + "}": {"https://mirror.example/azcmagent.deb", "https://packages.example/azcmagent.deb"},
		"{}": nil,
	} {
		doc, err := Decode([]byte(head + "identity: {arc: {registration: {azureCLI: {}}, agent: " + agent + "}}\nartifacts: {mirrors: [{prefix: \"https://packages.example/\", url: \"https://mirror.example/\"}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		a := doc.References().Arc.Agent
		if a == nil || !slices.Equal(a.URLs, want) || a.Field != "identity.arc.agent" || a.Validate() != nil || len(want) > 0 && a.SHA256 != strings.ToLower(digest) {
			t.Errorf("%s: %+v", agent, a)
		}
	}
}
