package builder

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
)

// The package of Azure Arc's agent is one of the things that a machine of the document
// fetches, though no state has it.
func TestWantedAgent(t *testing.T) {
	const document = `{"apiVersion": "berth.dev/v1alpha1", "kind": "NodeConfig", "components": {"kubernetes": {"version": "1.36.3"}},
		"cluster": {"resourceId": "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/one", "location": "westeurope"},
		"identity": {"arc": {"registration": {"azureCLI": {}}, "agent": {"urls": ["https://a/azcmagent.deb#sha256=` + hexDigest + `"]}}}}`
	c, err := contract.Decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	w, err := WantedBy(c, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := w.named(component.ArcPackage); !ok || len(a.URLs) != 1 {
		t.Errorf("%+v, %t", a, ok)
	}
}

// What a document leaves to berth to find is the programs of the bundle's platform, not
// those of the machine that makes it.
func TestWantedOfAPlatform(t *testing.T) {
	for name, c := range map[string]struct {
		document string
		wanted   []string
	}{
		"NodeConfig": {`{"apiVersion": "berth.dev/v1alpha1", "kind": "NodeConfig", "components": {"kubernetes": {"version": "1.36.3"}},
			"cluster": {"server": "https://api.example:6443", "caFile": "/ca.pem"}, "identity": {"bootstrapToken": {"tokenFile": "/token"}}}`,
			[]string{"kubernetes", "containerd", "runc", "cni-plugins"}},
		"AKS": {isolated(t), []string{"kubernetes", "containerd"}},
	} {
		doc, err := contract.Decode([]byte(c.document))
		if err != nil {
			t.Fatal(err)
		}
		for _, arch := range []string{"amd64", "arm64"} {
			w, err := WantedBy(doc, "linux/"+arch)
			if err != nil {
				t.Fatal(err)
			}
			for _, artifact := range c.wanted {
				if a, ok := w.named(artifact); !ok || len(a.URLs) != 1 || !strings.Contains(a.URLs[0], arch) {
					t.Errorf("%s for %s: %s is %+v", name, arch, artifact, a)
				}
			}
		}
	}
}

// isolated is a document of AKS of which kubelet comes out of the cluster's registry, and
// containerd from below an address.
func isolated(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../contract/aks/testdata/minimal.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	doc["bootstrap_profile_container_registry_server"] = "acr.example"
	doc["containerd_config"] = map[string]any{"containerd_version": "2.2.9", "containerd_download_url_base": "https://mirror.example/c"}
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const hexDigest = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
