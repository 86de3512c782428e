package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// moments is how many runs are killed, each at another part of its way.
const moments = 10

// TestKill9 kills provisioning at random moments. The unit starts it again, and
// the machine is the one that an undisturbed run makes: Ready, nothing left to
// do, containerd and kubelet started once.
func TestKill9(t *testing.T) {
	l := sharedLab(t)
	whole := undisturbed(t, l)
	seed := uint64(time.Now().UnixNano())
	t.Logf("an undisturbed run takes %s; seed %d", whole.Round(time.Millisecond), seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range moments {
		share := (float64(i) + random.Float64()) / moments
		t.Run(fmt.Sprintf("%02.0f percent", 100*share), func(t *testing.T) {
			t.Parallel()
			killedAt(t, l, fmt.Sprintf("kill-%d", i), time.Duration(share*float64(whole)))
		})
	}
}

// undisturbed measures a run, to know when to kill, and what it starts.
func undisturbed(t *testing.T, l *lab.Lab) time.Duration {
	t.Helper()
	n := idleNode(t, l, "kill-none")
	start := time.Now()
	run(t, n, "systemctl", "start", nodeconfigutils.Unit)
	run(t, n, controllerPath, "provision-wait")
	whole := time.Since(start)
	isTheNode(t, l, n)
	return whole
}

// idleNode is a booted node with a configuration that nobody has used yet.
func idleNode(t *testing.T, l *lab.Lab, name string) *lab.Node {
	t.Helper()
	n := addNode(t, l, lab.NodeConfig{Name: name, UserData: idleUserData})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := n.WriteFile(configPath, document(t, nodeConfig(t, l)), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// killedAt kills a run after a while. A run that was faster than that is made
// again on another machine and killed earlier.
func killedAt(t *testing.T, l *lab.Lab, name string, after time.Duration) {
	for try := range 4 {
		n := idleNode(t, l, fmt.Sprintf("%s-%d", name, try))
		if kill(t, n, after) {
			run(t, n, controllerPath, "provision-wait")
			isTheNode(t, l, n)
			return
		}
		t.Logf("the run had ended after %s", after)
		after = after * 3 / 4
	}
	t.Error("no run was caught")
}

// kill starts the unit and kills its main process; it says whether the process
// was still there and had no result.
func kill(t *testing.T, n *lab.Node, after time.Duration) bool {
	t.Helper()
	script := fmt.Sprintf(`systemctl start %[1]s && sleep %.3[2]f && pid=$(systemctl show -P MainPID %[1]s)
[ "$pid" != 0 ] && kill -9 $pid && journalctl --sync; systemctl show -P NRestarts -P ActiveState %[1]s
for i in 1 2 3 4 5 6 7 8 9 10; do systemctl show -P NRestarts %[1]s | grep -qx 1 && exit 0; sleep 0.2; done; exit 1`,
		nodeconfigutils.Unit, after.Seconds())
	start := time.Now()
	r, err := n.Exec(within(t, time.Minute), "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("killed %s after the start (%.1f s): %s", after.Round(time.Millisecond), time.Since(start).Seconds(), strings.Fields(string(r.Stdout)))
	return r.Code == 0
}

// isTheNode checks that a machine is what an undisturbed run makes of it.
func isTheNode(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	if _, err := l.WaitNodeReady(within(t, time.Minute), n.Name); err != nil {
		t.Fatal(err)
	}
	planIsEmpty(t, l, n)
	if out := run(t, n, "sh", "-c", "find / -xdev -name '.berth.*.new'; find /var/lib/berth/journal.json 2>/dev/null; true"); out != "" {
		t.Errorf("left over:\n%s", out)
	}
	for _, u := range []string{"containerd.service", "kubelet.service"} {
		if n := starts(t, n, u); n != 1 {
			t.Errorf("%s was started %d times", u, n)
		}
	}
	if t.Failed() {
		t.Logf("log:\n%s", run(t, n, "cat", "/var/log/azure/aks-node-controller.log"))
		t.Logf("starts:\n%s", run(t, n, "sh", "-c", "journalctl --no-pager -o short-precise | grep -E 'containerd.service|kubelet.service|aks-node-controller|Reloading'"))
	}
}

// starts counts how often systemd has begun to start a unit.
func starts(t *testing.T, n *lab.Node, unit string) int {
	t.Helper()
	const starting = "7d4958e842da4a758f6c1cdc7b36dcc5" // SD_MESSAGE_UNIT_STARTING
	out := run(t, n, "journalctl", "-q", "--no-pager", "-o", "cat", "MESSAGE_ID="+starting, "UNIT="+unit)
	return strings.Count(out, "\n")
}
