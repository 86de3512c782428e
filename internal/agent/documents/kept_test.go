package documents

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// What is kept of a contract comes to the same state again, on a machine that
// answers nothing any more.
func TestKeptContractIsTheSameState(t *testing.T) {
	document, err := os.ReadFile("../../contract/aks/testdata/minimal.json")
	if err != nil {
		t.Fatal(err)
	}
	facts := component.Facts{Hostname: "node-1", NodeIP: "10.0.0.4,fd00::4", IPv6: true, Resolved: true, ContainerdVersion: "2.2.9",
		ContainerdPath: "/usr/bin/containerd", VendorUnits: []string{"containerd.service"}, VersionedPrograms: []string{"kubelet-1.34.2"},
		Images: []component.BundledImage{{Reference: "r", Digest: "sha256:d"}}}
	doc, err := contract.Decode(document)
	if err != nil {
		t.Fatal(err)
	}
	want, err := doc.Translate(facts)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := StateOf(memory.New(), &trial.Contract{Document: document, Facts: kept})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(printed(t, want), printed(t, got)); d != "" {
		t.Error(d)
	}
}

func printed(t *testing.T, st *desired.State) string {
	t.Helper()
	b, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
