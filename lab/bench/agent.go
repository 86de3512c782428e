package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab"
)

const (
	agentDir     = "/var/lib/gardener-node-agent"
	agentOptions = "/etc/berth/agent.yaml"
)

// Times of rest in which the agent's use is measured.
const (
	agentRest = time.Minute
	// agentSettles is how long what follows a change may go on.
	agentSettles = 30 * time.Second
	// agentRestAfter is after the large document, where the options say nothing.
	agentRestAfter = time.Minute
)

// Change is a document on its way, from when its Secret was sent.
type Change struct {
	// Heard is when a watch of the Secret told of it, the bench's own: the agent can't act
	// before. InPlace is when the last file got its name, Durable when all was durable and
	// units were started, InForce when those had stayed up, Said when a watch of the Node had
	// the checksum.
	Heard, InPlace, Durable, InForce, Said time.Duration
	// Written is what the process wrote to disks, in bytes.
	Written int64
}

// AgentFigures are all of the part "agent".
type AgentFigures struct {
	Small, Restart []Change
	// Tried are restarts of a unit as Restart, with a trial.
	Tried, Large, Removal []Change
	NoChange              []time.Duration
	// Idle is before the large document, After after it; the CPU is that of the rest.
	Idle, After       usage
	IdleCPU, AfterCPU time.Duration
	IdleFor, AfterFor time.Duration
	// Traffic is of the rest, Watches those that were open in it.
	Traffic   traffic
	Watches   int
	LargeSize int
}

type agentBench struct {
	lab     *lab.Lab
	node    *lab.Node
	cluster *agentCluster
	out     AgentFigures
	words   oscWords
	n       int
	// restAfter is how long it rests after the large document.
	restAfter time.Duration
}

// agents measures the agent of one node.
func agents(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	c, err := newAgentCluster(ctx, l)
	if err != nil {
		return err
	}
	defer c.stop()
	n, err := provisioned(ctx, l, "agent")
	if err != nil {
		return err
	}
	b := &agentBench{lab: l, node: n, cluster: c, words: oscWords{File: "0", Trigger: "0"}, restAfter: cmp.Or(o.AgentRest, agentRestAfter)}
	err = b.run(ctx, o)
	PrintAgent(w, &b.out)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, n.Tail(ctx, 40))
	}
	return nil
}

func (b *agentBench) run(ctx context.Context, o Options) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return b.times(ctx, o.Pairs, b.small) },
		func(ctx context.Context) error { return b.times(ctx, o.Pairs, b.restart) },
		b.tryChanges,
		func(ctx context.Context) error { return b.times(ctx, 2, b.tried) },
		b.idle,
		func(ctx context.Context) error { return b.times(ctx, 3, b.large) },
		b.noChange,
		b.afterLarge,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *agentBench) times(ctx context.Context, rounds int, do func(context.Context) error) error {
	for range rounds {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the agent a service, as init data does, and gives it a first document.
func (b *agentBench) begin(ctx context.Context) error {
	if err := layAgent(ctx, b.lab, b.node); err != nil {
		return err
	}
	if err := b.node.Run(ctx, "berth", "agent", "bootstrap"); err != nil {
		return err
	}
	_, err := b.change(ctx)
	return err
}

func layAgent(ctx context.Context, l *lab.Lab, n *lab.Node) error {
	if err := n.Run(ctx, "mkdir", "-p", agentDir+"/credentials", "/etc/berth"); err != nil {
		return err
	}
	files, err := agentFiles(l, n.Name)
	if err != nil {
		return err
	}
	files[agentOptions] = "jitter: 0s\ntrial: false\n"
	for path, text := range files {
		if err := n.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// agentFiles are what init data leaves for an agent.
func agentFiles(l *lab.Lab, machine string) (map[string]string, error) {
	ca, err := l.CA()
	if err != nil {
		return nil, err
	}
	config := "apiVersion: nodeagent.config.gardener.cloud/v1alpha1\nkind: NodeAgentConfiguration\nlogLevel: debug\n" +
		fmt.Sprintf("apiServer: {server: %q, caFile: %s/cluster-ca.crt}\ncontrollers:\n  operatingSystemConfig: {secretName: %s, kubernetesVersion: %s}\n",
			l.APIServer(), agentDir, agentSecret, l.KubernetesVersion())
	return map[string]string{
		agentDir + "/cluster-ca.crt": string(ca), agentDir + "/machine-name": machine, agentDir + "/credentials/bootstrap-token": lab.Token,
		agentDir + "/config-v0.0.1.yaml": config,
	}, nil
}

// small changes a file that no unit reads.
func (b *agentBench) small(ctx context.Context) error {
	b.words.File = b.next()
	return b.measure(ctx, &b.out.Small)
}

// restart changes a file for which a unit restarts.
func (b *agentBench) restart(ctx context.Context) error {
	b.words.Trigger = b.next()
	return b.measure(ctx, &b.out.Restart)
}

// tryChanges has the agent try changes from now on, as it does by itself: it starts
// anew.
func (b *agentBench) tryChanges(ctx context.Context) error {
	before, err := usageOf(ctx, b.node)
	if err != nil {
		return err
	}
	if err := b.node.WriteFile(agentOptions, []byte("jitter: 0s\n"), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := b.node.WaitFor(ctx, "sh", "-c", "p=$(systemctl show -P MainPID "+agentUnit+"); [ $p != 0 ] && [ $p != "+before.PID+" ] && systemctl is-active -q "+agentUnit); err != nil {
		return err
	}
	b.words.File = b.next()
	_, err = b.change(ctx)
	return err
}

// tried changes a file for which a unit restarts that is then looked at for a while.
func (b *agentBench) tried(ctx context.Context) error {
	b.words.Trigger = b.next()
	return b.measure(ctx, &b.out.Tried)
}

// large brings 1 MB and takes it away again.
func (b *agentBench) large(ctx context.Context) error {
	b.words.Large, b.words.File = true, b.next()
	b.out.LargeSize = len(b.words.document())
	if err := b.measure(ctx, &b.out.Large); err != nil {
		return err
	}
	b.words.Large, b.words.File = false, b.next()
	return b.measure(ctx, &b.out.Removal)
}

func (b *agentBench) next() string {
	b.n++
	return strconv.Itoa(b.n)
}

// measure asks for the document and keeps what its change took.
func (b *agentBench) measure(ctx context.Context, to *[]Change) error {
	if err := quiesce(ctx, false); err != nil {
		return err
	}
	c, err := b.change(ctx)
	if err == nil {
		*to = append(*to, c)
	}
	return err
}

func (b *agentBench) change(ctx context.Context) (c Change, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	before, err := usageOf(ctx, b.node)
	if err != nil {
		return c, err
	}
	sum, start, err := b.cluster.ask(ctx, b.words.document())
	if err != nil {
		return c, err
	}
	said, err := b.cluster.await(ctx, sum, 1)
	if err != nil {
		return c, err
	}
	durable, inForce, err := b.forceTimes(ctx, start, sum)
	if err != nil {
		return c, err
	}
	inPlace, err := b.inPlace(ctx)
	if err != nil {
		return c, err
	}
	after, err := usageOf(ctx, b.node)
	if err == nil && after.PID != before.PID {
		err = fmt.Errorf("the agent was restarted meanwhile")
	}
	return Change{
		Heard: b.cluster.heardAt(sum).Sub(start), InPlace: inPlace.Sub(start), Durable: durable.Sub(start), InForce: inForce.Sub(start), Said: said[0].Sub(start),
		Written: after.Written - before.Written,
	}, err
}

// forceTimes are when a document was durable and when it was in force, by the agent's log.
// Where no unit had to stay up both are one.
func (b *agentBench) forceTimes(ctx context.Context, since time.Time, sum string) (durable, inForce time.Time, err error) {
	const proved = "a document is in force"
	lines, err := waitLogged(ctx, b.node, since, 1, func(l logged) bool { return l.Msg == proved && l.Checksum == sum })
	if err != nil {
		return durable, inForce, err
	}
	inForce = lines[0].Time
	all, err := logOf(ctx, b.node, since)
	if err != nil {
		return durable, inForce, err
	}
	return durableAt(all, sum, inForce), inForce, nil
}

// durableAt is when a log says that all of a document was durable; else when it was in
// force.
func durableAt(log []logged, sum string, inForce time.Time) time.Time {
	for _, l := range log {
		if l.Checksum == sum && strings.HasPrefix(l.Msg, "a document is durable") {
			return l.Time
		}
	}
	return inForce
}

// inPlace is when the last of the document's files got its name or went: a rename
// changes what the kernel says of the file, a removal what it says of the directory.
func (b *agentBench) inPlace(ctx context.Context) (time.Time, error) {
	text, err := b.node.Output(ctx, "sh", "-c", "find "+oscDir+" /etc/systemd/system -name 'agent-bench*' -o -path '"+oscDir+"*' | xargs stat -c %.9Z | sort -n | tail -n 1")
	if err != nil {
		return time.Time{}, err
	}
	seconds, fraction, _ := strings.Cut(strings.TrimSpace(text), ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read when files came: %w", err)
	}
	ns, err := strconv.ParseInt(fraction, 10, 64)
	return time.Unix(s, ns), err
}

// noChange looks at the large document that is in force: once when a pause begins and
// once when it ends.
func (b *agentBench) noChange(ctx context.Context) error {
	b.words.Large, b.words.File = true, b.next()
	if _, err := b.change(ctx); err != nil {
		return err
	}
	if err := quiesce(ctx, false); err != nil {
		return err
	}
	for i := range 10 {
		start := time.Now()
		if err := b.node.Run(ctx, "berth", "agent", "pause", "--for", []string{"1h", "0s"}[i%2]); err != nil {
			return err
		}
		lines, err := waitLogged(ctx, b.node, start, 1, func(l logged) bool { return l.Msg == "looked at everything" })
		if err != nil {
			return err
		}
		took, err := time.ParseDuration(lines[0].Took)
		if err != nil {
			return fmt.Errorf("read how long a look took: %w", err)
		}
		b.out.NoChange = append(b.out.NoChange, took)
	}
	return nil
}

// idle measures the agent at rest with a small document. What the change before it left
// to do, as giving memory back, is not rest yet.
func (b *agentBench) idle(ctx context.Context) error {
	if _, _, _, err := b.rest(ctx, agentSettles); err != nil {
		return err
	}
	first, last, from, err := b.rest(ctx, agentRest)
	if err != nil {
		return err
	}
	b.out.Idle, b.out.IdleCPU, b.out.IdleFor = last, last.CPU-first.CPU, agentRest
	all, err := readAudit(b.lab.AuditLog())
	if err != nil {
		return err
	}
	b.out.Traffic, b.out.Watches = trafficOf(all, from, from.Add(agentRest)), openWatches(all)
	return nil
}

// afterLarge measures it at rest after the large document, which is in force.
func (b *agentBench) afterLarge(ctx context.Context) error {
	if _, _, _, err := b.rest(ctx, agentSettles); err != nil {
		return err
	}
	first, last, _, err := b.rest(ctx, b.restAfter)
	b.out.After, b.out.AfterCPU, b.out.AfterFor = last, last.CPU-first.CPU, b.restAfter
	return err
}

func (b *agentBench) rest(ctx context.Context, d time.Duration) (first, last usage, from time.Time, err error) {
	if first, err = usageOf(ctx, b.node); err != nil {
		return first, last, from, err
	}
	from = time.Now()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return first, last, from, ctx.Err()
	}
	last, err = usageOf(ctx, b.node)
	return first, last, from, err
}
