package e2e

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// planned is what `berth plan -o json` prints, as far as tests look at it.
type planned struct {
	Actions []planAction `json:"actions"`
	Remarks []string     `json:"remarks"`
	code    int
}

type planAction struct {
	ID     string `json:"id"`
	Verb   string `json:"verb"`
	Reason string `json:"reason"`
}

// ids are the actions as "id verb", sorted.
func (p planned) ids() []string {
	out := []string{}
	for _, a := range p.Actions {
		out = append(out, a.ID+" "+a.Verb)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// plan asks what apply would change on a node.
func plan(t *testing.T, n *lab.Node) planned {
	t.Helper()
	r, err := n.Exec(within(t, 30*time.Second), berthPath, "plan", "-f", configPath, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	p := planned{code: r.Code}
	if r.Code != 0 && r.Code != 2 {
		t.Fatalf("plan: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if err := json.Unmarshal(r.Stdout, &p); err != nil {
		t.Fatalf("plan: %v\n%s", err, r.Stdout)
	}
	return p
}

func planIsEmpty(t *testing.T, _ *lab.Lab, n *lab.Node) {
	t.Helper()
	if p := plan(t, n); len(p.Actions) > 0 || p.code != 0 {
		t.Errorf("exit code %d, actions %v", p.code, p.Actions)
	}
}
