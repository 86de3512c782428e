package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// UnitLives is the program that has the engine put units on a machine, change and
// withdraw them: the tests of internal/converge/unitlife, in the module at root.
func UnitLives(t *testing.T, root string) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), "unitlife")
	build := exec.CommandContext(Within(t, 3*time.Minute), "go", "test", "-c", "-ldflags=-s -w", "-o", program, "./internal/converge/unitlife")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the lives: %v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
