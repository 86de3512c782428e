package credentialprovider

import (
	"slices"
	"testing"

	kubeletv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

// The image's package is the source where nobody names another.
func TestPackage(t *testing.T) {
	const file = "/opt/azure-acr-credential-provider/downloads/azure-acr-credential-provider_1.34.1-1_amd64.deb"
	for name, c := range map[string]struct{ url, pkg, want, member string }{
		"neither": {"", "", "", "azure-acr-credential-provider"},
		"package": {"", file, "file://" + file, "usr/bin/azure-acr-credential-provider"},
		"both":    {"https://p.example/a.tar.gz", file, "https://p.example/a.tar.gz", "azure-acr-credential-provider"},
	} {
		rs, err := Resources(Settings{ConfigFile: "/etc/p.yaml", BinDir: "/opt/p", URL: c.url, Package: c.pkg})
		if err != nil {
			t.Fatal(err)
		}
		a := rs[0].(*desired.Artifact)
		if got := append(a.URLs, "")[0]; got != c.want || a.Files[0].Member != c.member {
			t.Errorf("%s: %q of %q", name, a.Files[0].Member, got)
		}
	}
}

func TestResources(t *testing.T) {
	const file = "/var/lib/kubelet/credential-provider-config.yaml"
	base := Settings{ConfigFile: file, BinDir: "/var/lib/kubelet/credential-provider/"}
	mirrored := base
	mirrored.URL = "https://packages.example/provider.tar.gz"
	mirrored.RegistrySuffix, mirrored.Mirror, mirrored.MirrorOf = "azurecr.local", "acr.example/cache", "mcr.microsoft.com"
	pods := base
	pods.Pods = &PodIdentity{SNI: "sni.cluster.example", APIServer: "cluster.example", ClientID: "client", TenantID: "tenant"}
	for name, s := range map[string]Settings{"plain.yaml": base, "mirrored.yaml": mirrored, "pods.yaml": pods} {
		rs, err := Resources(s)
		if err != nil {
			t.Fatal(err)
		}
		st := golden.State(t, rs)
		text := golden.File(t, st, file).Content.Data()
		golden.Check(t, name, string(text))
		if err := yaml.UnmarshalStrict(text, &kubeletv1.CredentialProviderConfig{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		a := st.Lookup(desired.ArtifactID("acr-credential-provider")).(*desired.Artifact)
		if got := a.Files[0].Path; got != "/var/lib/kubelet/credential-provider/acr-credential-provider" {
			t.Errorf("program at %s", got)
		}
	}
}

// What has no default is not named: the provider would take an empty one.
func TestPodIdentityWithoutDefaults(t *testing.T) {
	i := &PodIdentity{SNI: "sni.example", APIServer: "10.0.0.1"}
	if got := i.args(); !slices.Equal(got, []string{"--ib-sni-name=sni.example", "--ib-apiserver-ip=10.0.0.1"}) {
		t.Error(got)
	}
}
