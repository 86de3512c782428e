package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/lab"
)

const (
	serialAnnotation = "reconciliation.osc.node-agent.gardener.cloud/serial"
	// turnLog has a line for each start and each end of the slow unit.
	turnLog = "/var/log/turn"
)

// slow is a document whose unit needs two seconds to start, and writes down when it
// began and ended. All machines of the lab have one clock.
func slow(text string) string {
	unit := "[Unit]\nDescription=slow\n[Service]\nType=oneshot\nRemainAfterExit=yes\n" +
		`ExecStart=/bin/sh -c 'echo begin $(date +%%s%%N) >>` + turnLog + `; sleep 2; echo end $(date +%%s%%N) >>` + turnLog + `'` +
		"\n[Install]\nWantedBy=multi-user.target\n"
	return oscDocument(oscFile("/etc/slow.conf", text), oscUnit("slow.service", unit, "/etc/slow.conf"))
}

// TestAgentsTakeTurns: where a pool goes one after another, no two of its machines
// change at a time; the turn of one that dies in the middle of its change is free
// when its time has passed, and not before. A cluster manager that waits by what agents
// publish sees each rollout end, and sees that an agent has died.
func TestAgentsTakeTurns(t *testing.T) {
	parallelLong(t)
	pool := agentPool(t, agentOf(t, sharedLab(t), "turns"), slow("one"), "turn-a", "turn-b", "turn-c")
	rollout := manager{pool.agentMachine, 3}
	pool.ask(t, slow("one"))
	rollout.rolledOut(t)
	pool.oneByOne(t, 3)

	t.Run("a second document", func(t *testing.T) {
		pool.ask(t, slow("two"))
		rollout.rolledOut(t)
		pool.oneByOne(t, 6)
	})
	t.Run("two at a time", func(t *testing.T) {
		pool.together(t, 2)
		pool.ask(t, slow("two at a time"))
		rollout.rolledOut(t)
		if got := pool.most(t); got != 2 {
			t.Errorf("at most %d at a time", got)
		}
		pool.together(t, 1)
	})
	t.Run("one dies", func(t *testing.T) {
		sum := pool.ask(t, slow("three"))
		dead := pool.begins(t)
		if err := dead.Crash(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		left := slices.DeleteFunc(slices.Clone(pool.machines), func(n *lab.Node) bool { return n == dead })
		time.Sleep(3 * time.Second) // both have heard of the document, and have seen whose turn it is
		for _, n := range left {
			if got := len(pool.times(t, n)); got != 0 {
				t.Errorf("%s did not wait: %d runs", n.Name, got)
			}
		}
		pool.passTime(t, dead.Name)
		pool.inForce(t, sum, left)
		pool.machines = left
		pool.oneByOne(t, 2)
		rollout.finds(t, "the agent of "+dead.Name+" stopped running")
	})
}

// pool is machines whose agents follow one Secret.
type pool struct {
	*agentMachine // any of them
	machines      []*lab.Node
}

// agentPool provisions machines and starts their agents.
func agentPool(t *testing.T, m *agentMachine, document string, names ...string) *pool {
	t.Helper()
	p := &pool{agentMachine: m}
	for _, name := range names {
		p.machines = append(p.machines, agentNode(t, m.lab, name, nil))
	}
	p.ask(t, document)
	for _, n := range p.machines {
		p.start(t, n)
	}
	return p
}

// start starts the agent of one of the machines, once it is a node.
func (p *pool) start(t *testing.T, n *lab.Node) {
	t.Helper()
	m := *p.agentMachine
	m.node = n
	m.provisioned(t)
	m.told(t)
	check(t, n.WriteFile(optionsFile, m.optionsOf(poolOptions), 0o600))
	m.patch(t, `{"metadata":{"labels":{%q:%q}}}`, agentSecretLabel, m.secret) // as the manager's kubelets do
	run(t, n, berthPath, "agent", "bootstrap")
}

func (p *pool) ask(t *testing.T, document string) string {
	t.Helper()
	return p.askWith(t, document, map[string]string{serialAnnotation: "true"})
}

// poolOptions have who waits see early that an agent has died.
const poolOptions = agentOptions + "lease: {renew: 5s, duration: 20s}\n"

// together lets so many machines work at a time from now on, and forgets all runs of the
// slow unit.
func (p *pool) together(t *testing.T, most int) {
	t.Helper()
	was := map[*lab.Node]string{}
	agent := func(n *lab.Node, property string) string {
		return strings.TrimSpace(run(t, n, "systemctl", "show", "-P", property, agentUnit))
	}
	for _, n := range p.machines {
		was[n] = agent(n, "InvocationID")
		check(t, n.WriteFile(optionsFile, p.optionsOf(fmt.Sprintf("%smaxUnavailable: %d\n", poolOptions, most)), 0o600))
	}
	for _, n := range p.machines {
		eventually(t, "start of the agent with its options", 40*time.Second, func() bool {
			return agent(n, "InvocationID") != was[n] && agent(n, "ActiveState") == "active"
		})
		check(t, n.WriteFile(turnLog, nil, 0o644))
	}
}

// most is how many runs of the slow unit there were at a time.
func (p *pool) most(t *testing.T) int {
	t.Helper()
	steps := map[int64]int{}
	for _, n := range p.machines {
		for _, run := range p.times(t, n) {
			steps[run.begin]++
			steps[run.end]--
		}
	}
	now, most := 0, 0
	for _, at := range slices.Sorted(maps.Keys(steps)) {
		now += steps[at]
		most = max(most, now)
	}
	return most
}

// inForce waits until machines say that a document is in force.
func (p *pool) inForce(t *testing.T, checksum string, on []*lab.Node) {
	t.Helper()
	for _, n := range on {
		if _, err := p.lab.WaitNode(within(t, 90*time.Second), n.Name, func(node *corev1.Node) bool { return node.Annotations[agentApplied] == checksum }); err != nil {
			t.Fatalf("%v\n%s", err, run(t, n, "journalctl", "--no-pager", "-n", "40", "-u", agentUnit))
		}
	}
}

// turnTime is one run of the slow unit; end is 0 for one that did not end.
type turnTime struct{ begin, end int64 }

func (p *pool) times(t *testing.T, n *lab.Node) []turnTime {
	t.Helper()
	text, err := n.ReadFile(turnLog)
	check(t, err)
	var out []turnTime
	for line := range strings.Lines(string(text)) {
		what, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		nanos, err := strconv.ParseInt(at, 10, 64)
		check(t, err)
		if what == "begin" {
			out = append(out, turnTime{begin: nanos})
		} else {
			out[len(out)-1].end = nanos
		}
	}
	return out
}

// oneByOne compares all runs of the slow unit: none began before the one before it
// had ended.
func (p *pool) oneByOne(t *testing.T, want int) {
	t.Helper()
	var all []turnTime
	for _, n := range p.machines {
		all = append(all, p.times(t, n)...)
	}
	slices.SortFunc(all, func(a, b turnTime) int { return int(a.begin - b.begin) })
	if len(all) != want {
		t.Errorf("%d runs, want %d", len(all), want)
	}
	for i := range all[1:] {
		if all[i].end == 0 || all[i+1].begin < all[i].end {
			t.Errorf("two at a time: %v", all)
		}
	}
}

// begins waits for the first machine that begins a run which has not ended.
func (p *pool) begins(t *testing.T) *lab.Node {
	t.Helper()
	for ctx := within(t, time.Minute); ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		for _, n := range p.machines {
			if all := p.times(t, n); len(all) > 0 && all[len(all)-1].end == 0 {
				return n
			}
		}
	}
	t.Fatal("nobody begins")
	return nil
}

// passTime makes the turn of a machine one that counts for a second and that nobody has
// renewed since: who waits has seen it for longer than that.
func (p *pool) passTime(t *testing.T, holder string) {
	t.Helper()
	leases := p.lab.Client().CoordinationV1().Leases("kube-system")
	succeeds(t, func(ctx context.Context) error {
		l, err := leases.Get(ctx, p.secret, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != holder {
			return fmt.Errorf("the turn is not that of %s: %+v", holder, l.Spec)
		}
		second := int32(1)
		l.Spec.LeaseDurationSeconds = &second
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
		return err
	})
}
