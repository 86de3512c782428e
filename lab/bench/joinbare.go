package bench

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/site"
)

// Floor is what a join of a bare machine can't do without, beside what it takes.
type Floor struct {
	Join Run
	// Bytes is the time to move, check and unpack the archives, all at once, on such a
	// machine: by curl, sha256sum and tar.
	Bytes time.Duration
}

// Least is the floor: bytes, and kubelet's own time to Ready.
func (f Floor) Least() time.Duration { return f.Bytes + f.Join.Ready - f.Join.Kubelet }

// Ratio is what the join takes of its floor.
func (f Floor) Ratio() float64 { return f.Join.Ready.Seconds() / f.Least().Seconds() }

// joinBytes joins bare machines by a NodeConfig and prints.
func joinBytes(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	all, err := CompareFloor(ctx, l, o)
	PrintFloor(w, all)
	return err
}

// CompareFloor measures both in turn, o.Pairs times, each on a fresh bare machine.
func CompareFloor(ctx context.Context, l *lab.Lab, o Options) (all []Floor, err error) {
	dir, err := os.MkdirTemp("/var/tmp", "berth-bench-") // not /tmp, which may be memory
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	archives, err := site.Pack(ctx, l, dir, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	progs, err := site.Serve(ctx, l, archives)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, progs.Close()) }()
	b := &bench{lab: l, log: o.Log}
	for i := range o.Pairs {
		var f Floor
		sides := []func() error{
			func() error { return b.joinBare(ctx, progs, &f) },
			func() error { return b.move(ctx, progs, &f) },
		}
		if i%2 == 1 {
			sides[0], sides[1] = sides[1], sides[0]
		}
		for _, side := range sides {
			if err := side(); err != nil {
				return all, fmt.Errorf("round %d: %w", i+1, err)
			}
		}
		all = append(all, f)
		fmt.Fprintf(o.Log, "join of a bare machine, round %d: Ready %.2f s, floor %.2f s\n", i+1, f.Join.Ready.Seconds(), f.Least().Seconds())
	}
	return all, nil
}

func (b *bench) joinBare(ctx context.Context, progs *site.Programs, f *Floor) error {
	files, err := b.credentials()
	if err != nil {
		return err
	}
	text, err := b.nodeConfig(func(c *v1alpha1.NodeConfig) {
		c.Networking.Mode = v1alpha1.NetworkBridge
		progs.ConfigureNode(c)
	})
	if err != nil {
		return err
	}
	return b.fresh(ctx, bareMachine("join-bare", files), func(ctx context.Context, n *lab.Node) error {
		if err := n.WriteFile(configPath, text, 0o600); err != nil {
			return err
		}
		if err := quiesce(ctx, false); err != nil {
			return err
		}
		f.Join, err = b.timed(ctx, n, []string{"berth", "join", "-f", configPath})
		return err
	})
}

func bareMachine(name string, files map[string]lab.File) lab.NodeConfig {
	return lab.NodeConfig{Name: name, Flavour: lab.Bare, UserData: []byte("#cloud-config\n{}\n"), Files: files}
}

// mover moves, checks and unpacks what its arguments name, all at once, and prints when
// it began and ended. An address has its digest in the fragment.
const mover = `set -euo pipefail; cd "$(mktemp -d /opt/move.XXXXXX)"
s=$EPOCHREALTIME; pids=
for u; do
  ( d=${u##*/}; mkdir "$d.d"; unpack="tar xz -C $d.d"; case $u in *runc*) unpack="tee $d.d/runc";; esac
    curl -sSf "${u%%#*}" | tee >(sha256sum >"$d.sum") | $unpack >/dev/null
    until [ -s "$d.sum" ]; do sleep 0.001; done; grep -q "^${u##*sha256=} " "$d.sum" ) & pids="$pids $!"
done
for p in $pids; do wait $p; done
sync -f .; e=$EPOCHREALTIME; echo $s $e`

// move has the shell do what a join does with bytes. They are on the disk at its end, as
// berth's are before anything gets its name.
func (b *bench) move(ctx context.Context, progs *site.Programs, f *Floor) error {
	b.n++
	c := bareMachine(fmt.Sprintf("move-%d", b.n), nil)
	n, err := b.lab.AddNode(ctx, c)
	if err != nil {
		return err
	}
	if _, err := n.WaitBooted(ctx); err != nil {
		return err
	}
	if err := quiesce(ctx, false); err != nil {
		return err
	}
	args := []string{"bash", "-c", mover, "mover", progs.Kubernetes, progs.Containerd, progs.Runc, progs.CNI}
	text, err := n.Output(ctx, args...)
	if err != nil {
		return err
	}
	if f.Bytes, err = elapsed(strings.TrimSpace(text)); err != nil {
		return err
	}
	return n.Remove(ctx)
}

// PrintFloor writes the times and their ratio.
func PrintFloor(w io.Writer, all []Floor) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\njoin of a bare machine by a NodeConfig (%d rounds; median, min–max, seconds)\n", len(all))
	for _, f := range []struct {
		name string
		of   func(Floor) time.Duration
	}{
		{"join to Ready", func(f Floor) time.Duration { return f.Join.Ready }},
		{"bytes alone", func(f Floor) time.Duration { return f.Bytes }},
		{"kubelet to Ready", func(f Floor) time.Duration { return f.Join.Ready - f.Join.Kubelet }},
		{"floor", Floor.Least},
	} {
		var took []time.Duration
		for _, one := range all {
			took = append(took, f.of(one))
		}
		fmt.Fprintf(w, "  %-17s %s\n", f.name, summarise(took))
	}
	var ratios []float64
	for _, one := range all {
		ratios = append(ratios, one.Ratio())
	}
	ratio := percentOf(ratios)
	fmt.Fprintf(w, "  %-17s %.2f (%.2f–%.2f)   bound 1.30\n", "join / floor", ratio.median, ratio.min, ratio.max)
}
