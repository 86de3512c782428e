package vm

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

// automount has the engine put automounts on the machine, change and withdraw them, changes
// units when the clock was set back, and stops masked swap areas: a container has no kernel of
// its own for those.
func (m *machine) automount(t *testing.T) {
	t.Helper()
	ctx := setup.Within(t, vmDeadline)
	const program = "/root/unitlife"
	if r, err := m.Exec(ctx, packed(t, setup.UnitLives(t, "../../..")), "sh", "-c", "gunzip >"+program+" && chmod 755 "+program); err != nil || r.ExitCode != 0 {
		t.Fatalf("%v, %d: %s", err, r.ExitCode, r.Stderr)
	}
	m.step(t, "the lives are there")
	// The node's own contract is another owner's, and stays as it is.
	// Where it hangs it says so before this test gives up.
	r, err := m.Exec(ctx, nil, "env", "BERTH_CONFORMANCE=kernel", program, "-test.v", "-test.timeout="+vmDeadline.String(), "-test.run=TestLives/machine|TestStopSwap")
	if err != nil {
		t.Fatal(err)
	}
	said := string(r.Stdout)
	n := strings.Count(said, "--- PASS: TestLives/machine/")
	if r.ExitCode != 0 || n < 5 || !strings.Contains(said, "--- PASS: TestStopSwap") || strings.Contains(said, "--- SKIP") {
		t.Errorf("exit code %d, %d lives\n%s%s", r.ExitCode, n, r.Stdout, r.Stderr)
	}
	m.sh(t, "rm "+program)
	m.step(t, "lived")
}

func packed(t *testing.T, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
