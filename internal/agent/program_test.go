package agent

import (
	"testing"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A program that a document put there before the agent became a service of the machine
// is the service's, too: it stays when the document's state has it no more, since the
// agent leaves itself out.
func TestTheServiceKeepsItsProgram(t *testing.T) {
	const program = "/opt/bin/gardener-node-agent"
	h := memory.New()
	h.PutDir("/run/berth")
	apply := func(st *desired.State) {
		t.Helper()
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		if _, err := converge.New(converge.Options{Host: h, Command: "test", Workers: 1}).Apply(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	before := h.Tree("/opt")
	file := &desired.File{Path: program, Content: desired.Text("program"), Mode: 0o755, Life: desired.Managed}
	other := &desired.File{Path: "/etc/other", Content: desired.Text("x"), Mode: 0o644, Life: desired.Managed}
	doc := &desired.State{Owner: desired.OwnerOSC}
	doc.Add(file, other)
	apply(doc)
	setup, err := Setup(h, &ledger.Reader{}, program, config.BaseDir)
	if err != nil {
		t.Fatal(err)
	}
	apply(setup)
	left := &desired.State{Owner: desired.OwnerOSC}
	left.Add(other)
	apply(left)
	if text, err := h.ReadFile(program); err != nil || string(text) != "program" {
		t.Fatalf("%q %v", text, err)
	}
	apply(&desired.State{Owner: desired.OwnerOSC})
	apply(&desired.State{Owner: desired.OwnerBerth})
	if after := h.Tree("/opt"); len(after) != len(before) {
		t.Errorf("left: %v", after)
	}
}
