package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// moments is how many runs are killed, each at another part of its way.
const moments = 10

const logPath = "/var/log/azure/aks-node-controller.log"

// TestKill9 kills provisioning at random moments. The unit starts it again, and
// the machine is the one that an undisturbed run makes: Ready, nothing left to
// do, containerd and kubelet started once.
func TestKill9(t *testing.T) {
	t.Parallel()
	done := turn(t)
	l := sharedLab(t)
	lines := undisturbed(t, l)
	seed := uint64(time.Now().UnixNano())
	t.Logf("an undisturbed run logs %d lines; seed %d", lines, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	done()
	for i := range moments {
		m := moment{(2*i*lines + random.IntN(2*lines)) / (2 * moments), time.Duration(random.IntN(60)) * time.Millisecond}
		t.Run(m.String(), func(t *testing.T) {
			parallel(t)
			killedAt(t, l, fmt.Sprintf("kill-%d", i), m)
		})
	}
}

// moment is a point of a run by its progress, which a busy machine does not
// shift: so many lines of the log, and a while later.
type moment struct {
	lines int
	later time.Duration
}

func (m moment) String() string { return fmt.Sprintf("%d lines and %s", m.lines, m.later) }

// undisturbed makes a run and returns how many lines it logs.
func undisturbed(t *testing.T, l *lab.Lab) int {
	t.Helper()
	n := idleNode(t, l, "kill-none")
	run(t, n, "systemctl", "start", nodeconfigutils.Unit)
	run(t, n, controllerPath, "provision-wait")
	isTheNode(t, l, n)
	lines := logged(n)
	if lines == 0 {
		t.Fatal("an undisturbed run has no log")
	}
	return lines
}

// logged counts the lines of a node's log.
func logged(n *lab.Node) int {
	b, err := n.ReadFile(logPath)
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

// idleNode is a booted node with a configuration that nobody has used yet.
func idleNode(t *testing.T, l *lab.Lab, name string) *lab.Node {
	t.Helper()
	n := addNode(t, l, lab.NodeConfig{Name: name})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := n.WriteFile(configPath, document(t, nodeConfig(t, l)), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// killedAt kills a run at a moment. A run that had ended by then is made again
// on another machine and killed earlier.
func killedAt(t *testing.T, l *lab.Lab, name string, m moment) {
	for try := range 5 {
		n := idleNode(t, l, fmt.Sprintf("%s-%d", name, try))
		if kill(t, n, m) {
			run(t, n, controllerPath, "provision-wait")
			isTheNode(t, l, n)
			return
		}
		t.Logf("the run had ended before %s", m)
		m = moment{m.lines - 1, 0}
	}
	t.Error("no run was caught")
}

// kill starts the unit and kills its main process at a moment; it says whether
// systemd saw a run that was killed.
func kill(t *testing.T, n *lab.Node, m moment) bool {
	t.Helper()
	cmd, err := n.Command(within(t, time.Minute), "sh", "-c", `systemctl start `+nodeconfigutils.Unit+`
pid=$(systemctl show -P MainPID `+nodeconfigutils.Unit+`); echo; read go; [ "$pid" != 0 ] && kill -9 $pid`)
	if err != nil {
		t.Fatal(err)
	}
	trigger, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); logged(n) < m.lines && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(m.later)
	at := logged(n)
	if _, err := io.WriteString(trigger, "now\n"); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait() != nil {
		return false
	}
	eventually(t, "the unit runs again", 20*time.Second, func() bool {
		return n.Exists(sentinelPath) || run(t, n, "systemctl", "show", "-P", "NRestarts", nodeconfigutils.Unit) == "1\n"
	})
	restarted := run(t, n, "systemctl", "show", "-P", "NRestarts", nodeconfigutils.Unit) == "1\n"
	t.Logf("killed at line %d: %v", at, restarted)
	return restarted
}

// isTheNode checks that a machine is what an undisturbed run makes of it.
func isTheNode(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	if _, err := l.WaitNodeReady(within(t, time.Minute), n.Name); err != nil {
		t.Fatal(err)
	}
	planIsEmpty(t, l, n)
	// The node may be Ready before the run ends, which keeps its notes last.
	eventually(t, "the end of what is left over", 20*time.Second, func() bool {
		return run(t, n, "sh", "-c", "find / -xdev -name '.berth.*.new' -o -xdev -name '.berth.*.old'") == ""
	})
	for _, u := range []string{"containerd.service", "kubelet.service"} {
		if n := starts(t, n, u); n != 1 {
			t.Errorf("%s was started %d times", u, n)
		}
	}
	if t.Failed() {
		t.Logf("log:\n%s", run(t, n, "cat", logPath))
	}
}

// starts counts how often systemd has begun to start a unit.
func starts(t *testing.T, n *lab.Node, unit string) int {
	t.Helper()
	const starting = "7d4958e842da4a758f6c1cdc7b36dcc5" // SD_MESSAGE_UNIT_STARTING
	out := run(t, n, "journalctl", "-q", "--no-pager", "-o", "cat", "MESSAGE_ID="+starting, "UNIT="+unit)
	return strings.Count(out, "\n")
}
