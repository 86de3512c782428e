package systemd

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
)

// TestHostConformance runs the suite that every implementation of berth's host
// passes against a real machine: its disk and its systemd. A case that is
// skipped counts as failed.
func TestHostConformance(t *testing.T) {
	l := setup.Lab(t)
	program := filepath.Join(t.TempDir(), "hosttest")
	build := exec.CommandContext(setup.Within(t, 3*time.Minute), "go", "test", "-c", "-o", program, "./internal/host/hosttest")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the suite: %v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	n := setup.AddNode(t, l, lab.NodeConfig{Name: "conformance"})
	if _, err := n.WaitBooted(setup.Within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := n.WriteFile("/root/hosttest", content, 0o755); err != nil {
		t.Fatal(err)
	}
	before := cgroupOfInit(t, n)
	r, err := n.Exec(setup.Within(t, 8*time.Minute), "env", "BERTH_CONFORMANCE=machine", "/root/hosttest", "-test.v=test2json")
	if err != nil {
		t.Fatal(err)
	}
	if after := cgroupOfInit(t, n); after != before {
		t.Errorf("the jobs moved PID 1 from\n%sto\n%s", before, after)
	}
	cases := testEvents(t, r.Stdout)
	t.Logf("%d cases passed, %d of them on the machine itself", len(cases.ended("pass", "")), len(cases.ended("pass", onMachine)))
	for _, name := range append(cases.ended("fail", ""), cases.ended("skip", "")...) {
		t.Errorf("%s:\n%s", name, cases.said[name])
	}
	if r.Code != 0 && !t.Failed() || len(cases.ended("pass", "")) == 0 {
		t.Errorf("exit code %d\n%s%s", r.Code, last(r.Stdout), last(r.Stderr))
	}
	if len(cases.ended("pass", onMachine+".*(systemd|unit)")) == 0 {
		t.Error("no case of systemd ran")
	}
}

// cgroupOfInit is where PID 1 is in version 2, the only hierarchy in which a job moves it to
// where it is (systemd itself moves it in the others), and who is in that cgroup.
func cgroupOfInit(t *testing.T, n *lab.Node) string {
	t.Helper()
	text, err := n.Output(setup.Within(t, time.Minute), "sh", "-ec", `grep ^0:: /proc/1/cgroup; cat /sys/fs/cgroup/unified/init.scope/cgroup.procs`)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// onMachine matches the cases that ran on the machine, not on its models.
const onMachine = "^TestConformance/machine/"

// testCases are a test program's cases: how each ended and what it said.
type testCases struct{ result, said map[string]string }

// testEvents reads what a test program printed under -test.v=test2json.
func testEvents(t *testing.T, printed []byte) testCases {
	t.Helper()
	convert := exec.CommandContext(setup.Within(t, time.Minute), "go", "tool", "test2json")
	convert.Stdin = bytes.NewReader(printed)
	events, err := convert.Output()
	if err != nil {
		t.Fatalf("test2json: %v", err)
	}
	cases := testCases{map[string]string{}, map[string]string{}}
	for d := json.NewDecoder(bytes.NewReader(events)); d.More(); {
		var e struct{ Action, Test, Output string }
		if err := d.Decode(&e); err != nil {
			t.Fatalf("test2json: %v", err)
		}
		switch {
		case e.Action == "output" && !strings.HasPrefix(e.Output, "==="):
			cases.said[e.Test] += e.Output
		case e.Action == "pass", e.Action == "fail", e.Action == "skip":
			cases.result[e.Test] = e.Action
		}
	}
	delete(cases.result, "") // the program's own
	return cases
}

// ended are the names of the cases that ended in a way and match a pattern.
func (c testCases) ended(how, pattern string) []string {
	var names []string
	for name, result := range c.result {
		if result == how && regexp.MustCompile(pattern).MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// last is the end of a long output, where a program says why it gave up.
func last(b []byte) []byte { return b[max(0, len(b)-3000):] }
