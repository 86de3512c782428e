package converge_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A machine for which nobody has brought a token is left as it is, and the plan says why.
// A node whose certificate is lost is kept all the same, but for that.
func TestNobodyBroughtAToken(t *testing.T) {
	h, p, none := newMachine(), &providers{}, errors.New("no token is here")
	p.lacks, p.issue = none, none
	st, before := sampleState(t), tree(h)
	plan, err := engine(h, p).Plan(t.Context(), st)
	if !errors.Is(err, none) || plan == nil {
		t.Fatalf("plan: %v", err)
	}
	blocked := 0
	for _, a := range plan.Actions {
		if a.Blocked != "" {
			blocked++
			if a.Verb != "issue" || a.Blocked != none.Error() {
				t.Errorf("planned %+v", a)
			}
		}
	}
	if blocked != 1 {
		t.Errorf("%d actions are blocked", blocked)
	}
	if _, err := engine(h, p).Apply(t.Context(), st); !errors.Is(err, none) {
		t.Errorf("apply: %v", err)
	}
	after := tree(h)
	delete(after, "/run/berth")
	delete(after, "/run/berth/lock")
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("the machine was changed: %s", d)
	}

	if _, err := engine(h, &providers{}).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	kept := tree(h)
	for _, path := range []string{"/etc/containerd/config.toml", kubeconfig} {
		h.Put(path, "edited", 0o644)
	}
	if _, err := engine(h, p).Apply(t.Context(), st); !errors.Is(err, none) {
		t.Errorf("apply on a node: %v", err)
	}
	if now := tree(h)["/etc/containerd/config.toml"]; now != kept["/etc/containerd/config.toml"] {
		t.Errorf("the node is not kept: %q", now)
	}
}
