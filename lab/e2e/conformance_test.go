package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestHostConformance runs the suite that every implementation of berth's host
// passes against a real machine: its disk and its systemd. A case that is
// skipped counts as failed.
func TestHostConformance(t *testing.T) {
	l := sharedLab(t)
	program := filepath.Join(t.TempDir(), "hosttest")
	build := exec.CommandContext(within(t, 3*time.Minute), "go", "test", "-c", "-o", program, "./internal/host/hosttest")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the suite: %v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	n := addNode(t, l, lab.NodeConfig{Name: "conformance", UserData: idleUserData})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := n.WriteFile("/root/hosttest", content, 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := n.Exec(within(t, 3*time.Minute), "env", "BERTH_CONFORMANCE=machine", "/root/hosttest", "-test.v")
	if err != nil {
		t.Fatal(err)
	}
	passed, skipped := verdicts(r.Stdout, "PASS"), verdicts(r.Stdout, "SKIP")
	t.Logf("%d cases passed, %d of them on the machine itself", passed, verdicts(r.Stdout, "PASS: TestConformance/machine/.*"))
	if r.Code != 0 || passed == 0 || skipped > 0 {
		t.Errorf("exit code %d, %d skipped\n%s%s", r.Code, skipped, r.Stdout, r.Stderr)
	}
	if verdicts(r.Stdout, "PASS: TestConformance/machine/.*systemd.*|PASS: TestConformance/machine/.*unit.*") == 0 {
		t.Errorf("no case of systemd ran:\n%s", bytes.TrimSpace(r.Stdout))
	}
}

func verdicts(out []byte, verdict string) int {
	return len(regexp.MustCompile(fmt.Sprintf(`(?m)^ *--- (?:%s)`, verdict)).FindAll(out, -1))
}
