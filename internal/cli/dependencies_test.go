package cli

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoHeavyClients keeps out of the program what costs every command its package
// inits (docs/decisions/0015).
func TestNoHeavyClients(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../cmd/berth").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatalf("only %d packages", len(deps))
	}
	for _, p := range deps {
		for _, heavy := range []string{"sigs.k8s.io/controller-runtime", "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers"} {
			if p == heavy || strings.HasPrefix(p, heavy+"/") {
				t.Errorf("the program depends on %s", p)
			}
		}
	}
}
