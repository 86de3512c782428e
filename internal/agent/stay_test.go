package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/desired"
)

// TestStay: the agent stays while a document says so; one that nobody asks for any more goes,
// and where there is none there is nothing to do.
func TestStay(t *testing.T) {
	h, k, apply := joined(t)
	before := withoutState(h)
	s := Stay{Host: h, Apply: apply, Program: k.Program, Version: k.Version, File: k.File}
	made := Made{Server: k.Server, Kubernetes: k.Kubernetes, State: &desired.State{Resources: []desired.Resource{
		&desired.ClientCertificate{NodeName: k.Node, Token: "abcdef.0123456789abcdef"}}}}
	if res, err := s.Run(t.Context(), made); err != nil || res != nil {
		t.Fatalf("without an agent: %v, %v", res, err)
	}
	made.Keeps = true
	if res, err := s.Run(t.Context(), made); err != nil || res == nil || res.Plan.Empty() {
		t.Fatalf("%v, %v", res, err)
	}
	if token, err := h.ReadFile(config.BootstrapToken); err != nil || !strings.HasPrefix(string(token), "abcdef.0123456789abcdef") {
		t.Errorf("its first certificate is asked for with %q, %v", token, err)
	}
	made.Keeps = false
	res, err := s.Run(t.Context(), made)
	if err != nil || len(res.Plan.Actions) != 1 || res.Plan.Actions[0].ID != desired.UnitID(config.Unit) {
		t.Fatalf("%v, %v", res, err)
	}
	if d := cmp.Diff(before, withoutState(h)); d != "" {
		t.Errorf("the machine (-before +after):\n%s", d)
	}
}

// TestLeavesWith: an agent that keeps a node goes with the document that asked for it; one that
// follows a Secret with the Secret's.
func TestLeavesWith(t *testing.T) {
	h, k, apply := joined(t)
	if got, err := LeavesWith(h); err != nil || got != desired.OwnerOSC {
		t.Errorf("%q, %v", got, err)
	}
	start(t, h, k, apply)
	if got, err := LeavesWith(h); err != nil || got != desired.OwnerNode {
		t.Errorf("%q, %v", got, err)
	}
}
