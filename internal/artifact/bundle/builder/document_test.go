package builder

import (
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
	w, err := WantedBy(c)
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := w.named(component.ArcPackage); !ok || len(a.URLs) != 1 {
		t.Errorf("%+v, %t", a, ok)
	}
}

const hexDigest = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
