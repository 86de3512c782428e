package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// ownInit is a line of inittrace on a package of berth.
var ownInit = regexp.MustCompile(`(?m)^init (github\.com/berth-dev/berth\S*) .* ([0-9]+) bytes, [0-9]+ allocs$`)

// Every command pays for what packages do before main: each of ours at most 100 KB.
// Allocations are counted, for they are the same on every machine.
func TestInits(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "berth")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command(bin, "version")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := ownInit.FindAllStringSubmatch(string(out), -1)
	if len(found) == 0 {
		t.Fatalf("no package of ours in\n%s", out)
	}
	for _, m := range found {
		if n, _ := strconv.Atoi(m[2]); n > 100_000 {
			t.Errorf("%s takes %d bytes before main", m[1], n)
		}
	}
}
