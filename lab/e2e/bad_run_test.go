package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/google/go-cmp/cmp"
)

func containsAll(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

func sameLines(t *testing.T, before, after []string) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the machine has changed:\n%s", diff)
	}
}

// twoRuns starts a run while another waits for an API server. The second says
// who holds the machine, and the result in the end is the first one's.
func twoRuns(t *testing.T, m *badMachine) {
	m.configure(t, m.document(t, toDark(9)))
	if err := m.node.WriteFile("/run/second.json", m.document(t, toDark(2)), 0o600); err != nil {
		t.Fatal(err)
	}
	before := m.look(t)
	first, ctx := make(chan int, 1), within(t, time.Minute)
	go func() {
		r, err := m.node.Exec(ctx, controllerPath, "provision", "--provision-config="+configPath)
		if err != nil {
			t.Error(err)
		}
		first <- r.Code
	}()
	eventually(t, "the first run", 5*time.Second, func() bool {
		return m.exec(t, "sh", "-c", "pgrep -f provision-config="+configPath+" && test -e /run/berth/provision.progress").Code == 0
	})
	r := m.exec(t, controllerPath, "provision", "--provision-config=/run/second.json")
	if r.Code != 249 || !containsAll(string(r.Stderr), "ERR_LOCKED", "provision", "pid", "hint") {
		t.Errorf("second run: exit code %d\n%s", r.Code, r.Stderr)
	}
	if code := <-first; code != 51 {
		t.Errorf("first run: exit code %d", code)
	}
	m.wait(t, 51)
	sameLines(t, before, m.look(t))
}

// interrupted stops runs in their midst.
func interrupted(t *testing.T, m *badMachine) {
	for _, signal := range []string{"INT", "TERM"} {
		m.refuse(t, badCase{
			name: "SIG" + signal, config: m.document(t, toDark(20)), code: 247, within: 5 * time.Second,
			args: []string{"timeout", "--foreground", "--preserve-status", "-s", signal, "1", controllerPath, "provision", "--provision-config=" + configPath},
			says: []string{"told to stop"}, hint: "Run berth provision again",
		})
	}
}

// waitForNobody starts provision-wait where no run ever ends. The function that
// it returns waits for it.
func (m *badMachine) waitForNobody(t *testing.T) func(*testing.T, *badMachine) {
	t.Helper()
	script := fmt.Sprintf(`set -e
mount -t tmpfs tmpfs /opt/azure/containers; mkdir -p /run/berth; mount -t tmpfs tmpfs /run/berth
echo '{"version": "v1", "cse_timeout": 1}' >%s
exec /usr/local/bin/berth provision-wait`, configPath)
	type ending struct {
		result lab.Result
		err    error
		took   time.Duration
	}
	done := make(chan ending, 1)
	ctx, start := within(t, 3*time.Minute), time.Now()
	go func() {
		r, err := m.node.Exec(ctx, "unshare", "-m", "sh", "-c", script)
		done <- ending{r, err, time.Since(start)}
	}()
	return func(t *testing.T, _ *badMachine) {
		e := <-done
		if e.err != nil {
			t.Fatal(e.err)
		}
		if o := checkPrinted(t, e.result, 124); !containsAll(o.Error, "not ended in time", "aks-node-controller.service") {
			t.Errorf("error %q", o.Error)
		}
		if e.took < 61*time.Second || e.took > 100*time.Second {
			t.Errorf("it took %s", e.took)
		}
	}
}
