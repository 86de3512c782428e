package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// printedLimit is how much provision-wait may print, in bytes.
const printedLimit = 4000

// outcome is a provision.json as far as these tests look at it.
type outcome struct {
	nodeconfigutils.CSEStatus
	Berth struct{ Code, Doing, Field, Hint, Milestone string }
}

// badCase is an input and what provisioning has to say of it.
type badCase struct {
	name   string
	config []byte
	// args replace the command line "provision --provision-config=FILE".
	args []string
	code int
	// field is the path of the field that is to blame.
	field string
	// hint and says are parts of the hint and of the error.
	hint string
	says []string
	// within is how long the run may take; 10 s if zero.
	within time.Duration
	// result is where the result stands, if not at its usual path.
	result string
}

// badMachine is a node that only gets inputs that must not change it.
type badMachine struct {
	lab  *lab.Lab
	node *lab.Node
}

// document is the lab's configuration with a test's changes.
func (m *badMachine) document(t *testing.T, edit ...func(*aksnodeconfigv1.Configuration)) []byte {
	t.Helper()
	return document(t, nodeConfig(t, m.lab, edit...))
}

// configure puts a configuration where CustomData would.
func (m *badMachine) configure(t *testing.T, doc []byte) {
	t.Helper()
	if err := m.node.WriteFile(configPath, doc, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m *badMachine) exec(t *testing.T, args ...string) lab.Result {
	t.Helper()
	r, err := m.node.Exec(within(t, 2*time.Minute), args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// provision runs a case's command line and returns what it printed.
func (m *badMachine) provision(t *testing.T, c badCase) lab.Result {
	t.Helper()
	if c.config != nil {
		m.configure(t, c.config)
	}
	args := c.args
	if args == nil {
		args = []string{controllerPath, "provision", "--provision-config=" + configPath}
	}
	start := time.Now()
	r := m.exec(t, args...)
	took := time.Since(start)
	t.Logf("%s: exit code %d in %.1f s", c.name, r.Code, took.Seconds())
	if took > loaded*cmp.Or(c.within, 10*time.Second) {
		t.Errorf("it took %s", took)
	}
	return r
}

// refuse runs a case, which must fail as it says and leave the machine alone.
func (m *badMachine) refuse(t *testing.T, c badCase) {
	t.Helper()
	before := m.look(t)
	r := m.provision(t, c)
	c.check(t, m, r)
	sameLines(t, before, m.look(t))
	if t.Failed() {
		t.Logf("stderr:\n%s", r.Stderr)
	}
}

// check compares everything that is said about a failure.
func (c badCase) check(t *testing.T, m *badMachine, r lab.Result) {
	t.Helper()
	if r.Code != c.code {
		t.Errorf("exit code %d, want %d", r.Code, c.code)
	}
	o := m.outcome(t, c.result)
	c.checkOutcome(t, o)
	for _, s := range []string{o.Berth.Code, o.Berth.Field, o.Berth.Hint} {
		if !strings.Contains(string(r.Stderr), s) {
			t.Errorf("stderr does not say %q", s)
		}
	}
	m.wait(t, c.code)
}

func (c badCase) checkOutcome(t *testing.T, o outcome) {
	t.Helper()
	if o.ExitCode != fmt.Sprint(c.code) || o.Berth.Code == "" {
		t.Errorf("result: exit code %q (%s), want %d", o.ExitCode, o.Berth.Code, c.code)
	}
	if o.Berth.Field != c.field {
		t.Errorf("result: field %q, want %q", o.Berth.Field, c.field)
	}
	if o.Berth.Hint == "" || !strings.Contains(o.Berth.Hint, c.hint) {
		t.Errorf("result: hint %q does not say %q", o.Berth.Hint, c.hint)
	}
	for _, s := range c.says {
		if !strings.Contains(o.Error, s) {
			t.Errorf("result: error %q does not say %q", o.Error, s)
		}
	}
	for _, text := range []string{o.Error, o.Output, o.Berth.Hint} {
		if strings.Contains(text, lab.Token) {
			t.Errorf("the token is shown: %s", text)
		}
	}
}

// outcome reads the result; path is its usual path if empty.
func (m *badMachine) outcome(t *testing.T, path string) outcome {
	t.Helper()
	b, err := m.node.ReadFile(cmp.Or(path, resultPath))
	if err != nil {
		t.Fatal(err)
	}
	return parseOutcome(t, b)
}

func parseOutcome(t *testing.T, b []byte) outcome {
	t.Helper()
	var o outcome
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatalf("result: %v\n%s", err, b)
	}
	return o
}

// wait runs provision-wait, which must end with a code and a short document
// that clients can read.
func (m *badMachine) wait(t *testing.T, code int) outcome {
	t.Helper()
	r := m.exec(t, controllerPath, "provision-wait")
	return checkPrinted(t, r, code)
}

func checkPrinted(t *testing.T, r lab.Result, code int) outcome {
	t.Helper()
	if r.Code != code {
		t.Errorf("provision-wait: exit code %d, want %d", r.Code, code)
	}
	if len(r.Stdout) > printedLimit || len(r.Stderr) > 0 {
		t.Errorf("provision-wait: %d bytes, stderr %q", len(r.Stdout), r.Stderr)
	}
	if s, err := nodeconfigutils.ParseCSEStatus(string(r.Stdout)); err != nil || s.ExitCode != fmt.Sprint(code) {
		t.Errorf("provision-wait: %v, %+v\n%s", err, s, r.Stdout)
	}
	return parseOutcome(t, r.Stdout)
}

// lookScript prints a line for everything that provisioning could change: names
// with attributes and, but for directories, the time of the last change of any
// kind; the units; some kernel parameters; the mounts. berth's own state, the
// logs and the result are left out, and what Debian does by its timers.
const lookScript = `
find /etc /opt /usr /var \( -path /var/lib/berth -o -path /var/log/azure -o -path /var/log/journal -o -path /var/lib/systemd \
  -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/waagent -o -path /opt/azure/containers/aks-node-controller-config.json \
  -o -path /opt/azure/containers/provision.complete \) -prune \
  -o -type d -printf '%p dir %m %U:%G\n' -o -printf '%p %y %m %U:%G %s %C@ %l\n'
systemctl show containerd.service kubelet.service -p Id,LoadState,ActiveState,UnitFileState,InvocationID,NRestarts
pgrep -xl containerd; pgrep -xl kubelet
cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_retries2 /proc/mounts
true`

// look is the machine as provisioning could change it, in lines.
func (m *badMachine) look(t *testing.T) []string {
	t.Helper()
	r := m.exec(t, "sh", "-c", lookScript)
	if r.Code != 0 || len(r.Stderr) > 0 {
		t.Fatalf("look at the machine: exit code %d\n%s", r.Code, r.Stderr)
	}
	lines := strings.Split(string(r.Stdout), "\n")
	slices.Sort(lines)
	return lines
}

// loaded is how many times longer a machine that has much else to do may take.
const loaded = 3

// eventually is for what another program does: it asks until the answer is yes,
// less and less often, since most questions start programs.
func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	limit *= loaded
	pause := 50 * time.Millisecond
	for deadline := time.Now().Add(limit); !ok(); pause = min(pause*5/4, 300*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s", what, limit)
		}
		time.Sleep(pause)
	}
}
