package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/build"
)

const (
	fleetProgram = "internal/agent/fleetbench"
	// fleetRest is how long a fleet at rest is looked at: each agent renews its Lease
	// once in it.
	fleetRest   = 40 * time.Second
	fleetWindow = time.Minute
)

// Rollout is a new document on its way to all agents.
type Rollout struct {
	// Half and All are when half of the Nodes and all said its checksum.
	Half, All time.Duration
	Traffic   traffic
}

// Fleet is one size of fleet.
type Fleet struct {
	Agents       int
	Start        time.Duration
	Rest         traffic
	Watches      int
	AtOnce, Slow Rollout
}

type fleetBench struct {
	lab     *lab.Lab
	cluster *agentCluster
	program string
	n       int
}

// fleets measures fleets of agents, each size by itself.
func fleets(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	c, err := newAgentCluster(ctx, l)
	if err != nil {
		return err
	}
	defer c.stop()
	dir, err := os.MkdirTemp("/var/tmp", "berth-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &fleetBench{lab: l, cluster: c, program: filepath.Join(dir, "fleet")}
	if err := b.build(ctx); err != nil {
		return err
	}
	var all []Fleet
	for _, size := range o.fleetSizes() {
		f, err := b.measure(ctx, size)
		if err != nil {
			return fmt.Errorf("%d agents: %w", size, err)
		}
		fmt.Fprintf(o.Log, "%d agents: all at once %.2f s\n", size, f.AtOnce.All.Seconds())
		all = append(all, f)
	}
	PrintFleets(w, all)
	return nil
}

// fleetSizes are the sizes to measure.
func (o Options) fleetSizes() []int {
	if len(o.Agents) > 0 {
		return o.Agents
	}
	return []int{100, 300}
}

func (b *fleetBench) build(ctx context.Context) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.program, "./"+fleetProgram)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the fleet: %w\n%s", err, out)
	}
	return nil
}

func (b *fleetBench) measure(ctx context.Context, size int) (f Fleet, err error) {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	f.Agents = size
	prefix := fmt.Sprintf("fleet%d-", size)
	if err := b.nodes(ctx, prefix, size); err != nil {
		return f, err
	}
	sum, _, err := b.cluster.ask(ctx, b.document())
	if err != nil {
		return f, err
	}
	start := time.Now()
	p, err := b.run(ctx, prefix, size)
	if err != nil {
		return f, err
	}
	defer func() {
		if e := p.end(); e != nil || err != nil {
			err = fmt.Errorf("%w, %w\n%s", err, e, p.said.String())
		}
	}()
	if err := p.await("ready"); err != nil {
		return f, err
	}
	if _, err := b.cluster.await(ctx, sum, size); err != nil {
		return f, err
	}
	f.Start = time.Since(start)
	return f, b.phases(ctx, p, &f)
}

func (b *fleetBench) phases(ctx context.Context, p *fleetProcess, f *Fleet) (err error) {
	if f.Rest, f.Watches, err = b.rest(ctx); err != nil {
		return err
	}
	if f.AtOnce, err = b.rollout(ctx, f.Agents); err != nil {
		return err
	}
	if err := p.order("jitter " + fleetWindow.String()); err != nil {
		return err
	}
	if err := b.watched(ctx, f.Watches); err != nil {
		return err
	}
	f.Slow, err = b.rollout(ctx, f.Agents)
	return err
}

// nodes makes Nodes that no kubelet speaks for.
func (b *fleetBench) nodes(ctx context.Context, prefix string, size int) error {
	for i := range size {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s%d", prefix, i)}}
		if _, err := b.lab.Client().CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("make Nodes: %w", err)
		}
	}
	return nil
}

func (b *fleetBench) document() string {
	b.n++
	return oscWords{File: fmt.Sprint(b.n), Trigger: "x"}.document()
}

// rest is what the fleet asks for while nothing happens.
func (b *fleetBench) rest(ctx context.Context) (traffic, int, error) {
	if err := quiesce(ctx, false); err != nil {
		return traffic{}, 0, err
	}
	from := time.Now()
	select {
	case <-time.After(fleetRest):
	case <-ctx.Done():
		return traffic{}, 0, ctx.Err()
	}
	all, err := readAudit(b.lab.AuditLog())
	return trafficOf(all, from, from.Add(fleetRest)), openWatches(all), err
}

// rollout changes the document and waits until all have it.
func (b *fleetBench) rollout(ctx context.Context, size int) (r Rollout, err error) {
	sum, start, err := b.cluster.ask(ctx, b.document())
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, fleetWindow+time.Minute)
	defer cancel()
	times, err := b.cluster.await(ctx, sum, size)
	if err != nil {
		return r, err
	}
	slices.SortFunc(times, time.Time.Compare)
	r.Half, r.All = times[len(times)/2].Sub(start), times[len(times)-1].Sub(start)
	if err := quiesce(ctx, false); err != nil { // events come after
		return r, err
	}
	all, err := readAudit(b.lab.AuditLog())
	r.Traffic = trafficOf(all, start, time.Now())
	return r, err
}

// watched waits until as many watches are open.
func (b *fleetBench) watched(ctx context.Context, want int) error {
	for {
		if err := quiesce(ctx, false); err != nil {
			return err
		}
		all, err := readAudit(b.lab.AuditLog())
		if err != nil || openWatches(all) == want {
			return err
		}
	}
}

// fleetProcess is a program that runs agents.
type fleetProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	said bytes.Buffer
}

func (b *fleetBench) run(ctx context.Context, prefix string, size int) (*fleetProcess, error) {
	ca, err := b.lab.CA()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(filepath.Dir(b.program), "ca.crt")
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		return nil, err
	}
	p := &fleetProcess{cmd: b.lab.Command(ctx, b.program, "-server", b.lab.APIServer(), "-ca", file, "-token", lab.Token,
		"-secret", agentSecret, "-prefix", prefix, "-agents", fmt.Sprint(size))}
	p.cmd.Stderr = &p.said
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the fleet: %w", err)
	}
	return p, nil
}

func (p *fleetProcess) order(line string) error {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return fmt.Errorf("tell the fleet: %w", err)
	}
	return p.await("done")
}

func (p *fleetProcess) await(word string) error {
	if p.out.Scan() && strings.TrimSpace(p.out.Text()) == word {
		return nil
	}
	return fmt.Errorf("the fleet does not say %q", word)
}

func (p *fleetProcess) end() error {
	p.in.Close()
	return p.cmd.Wait()
}
