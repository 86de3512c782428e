package credentialprovider

import (
	"testing"

	kubeletv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	const file = "/var/lib/kubelet/credential-provider-config.yaml"
	base := Settings{ConfigFile: file, BinDir: "/var/lib/kubelet/credential-provider/"}
	mirrored := base
	mirrored.URL = "https://packages.example/provider.tar.gz"
	mirrored.RegistrySuffix, mirrored.Mirror, mirrored.MirrorOf = "azurecr.local", "acr.example/cache", "mcr.microsoft.com"
	for name, s := range map[string]Settings{"plain.yaml": base, "mirrored.yaml": mirrored} {
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
