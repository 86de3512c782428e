package systemd

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
)

// TestUnitLives has the engine put units on a machine, change and withdraw them,
// where systemd is real: templates, sockets, timers, mounts, drop-ins, units that
// run once, that are skipped, that crash, that take each other along. Each step is
// followed by an empty plan and begins exactly the runs that it has to.
func TestUnitLives(t *testing.T) {
	l := setup.Lab(t)
	content := setup.UnitLives(t, "../../..")
	n := setup.AddNode(t, l, lab.NodeConfig{Name: "unitlife", Flavour: lab.Bare, WithoutBerth: true})
	if _, err := n.WaitBooted(setup.Within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := n.WriteFile("/root/unitlife", content, 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := n.Exec(setup.Within(t, 12*time.Minute), "env", "BERTH_CONFORMANCE=machine", "/root/unitlife", "-test.v=test2json", "-test.run=/machine")
	if err != nil {
		t.Fatal(err)
	}
	cases := testEvents(t, r.Stdout)
	lives := cases.ended("pass", "^TestLives/machine/")
	t.Logf("%d lives on systemd", len(lives))
	for _, name := range append(cases.ended("fail", ""), cases.ended("skip", "")...) {
		t.Errorf("%s:\n%s", name, cases.said[name])
	}
	if r.Code != 0 && !t.Failed() || len(lives) == 0 {
		t.Errorf("exit code %d\n%s%s", r.Code, last(r.Stdout), last(r.Stderr))
	}
	t.Log(strings.TrimSpace(cases.said["TestStartJob/machine"]))
}
