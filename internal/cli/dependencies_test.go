package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
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

// TestNothingIsKeptForItsName: where a method may be called by a name that is known at run time
// alone, the linker keeps every exported method of the program, a sixth of it.
func TestNothingIsKeptForItsName(t *testing.T) {
	c := exec.Command("go", "build", "-tags", "grpcnotrace", "-ldflags", "-dumpdep", "-o", filepath.Join(t.TempDir(), "berth"), "../../cmd/berth")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("-> main.main\n")) {
		t.Fatalf("%v: %d bytes", err, len(out))
	}
	for line := range bytes.Lines(out) {
		if bytes.Contains(line, []byte("<ReflectMethod>")) {
			t.Fatalf("calls methods by name: %s", line)
		}
	}
}
