package bench

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/site"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// Supply is where a node's programs come from.
type Supply struct {
	Name string
	Runs []Provision

	node     string // its name's beginning
	flavour  lab.Flavour
	document []byte
	files    map[string]lab.File
	requests int // to the lab's server, in each run
	bytes    int64
}

// Provision is one measured provisioning.
type Provision struct {
	Run
	site.Fetched
}

// Bare is the provisioning of a bare image, programs over HTTP or out of a
// bundle with the network cut, and of the same image with all programs.
type Bare struct{ There, HTTP, Bundle Supply }

func bare(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	all, err := CompareBare(ctx, l, o)
	all.Print(w)
	return err
}

// CompareBare runs the three in turn, each o.Pairs times.
func CompareBare(ctx context.Context, l *lab.Lab, o Options) (b Bare, err error) {
	// Not /tmp, which may be memory.
	dir, err := os.MkdirTemp("/var/tmp", "berth-bench-")
	if err != nil {
		return b, err
	}
	defer os.RemoveAll(dir)
	archives, err := site.Pack(ctx, l, dir, gzip.BestSpeed)
	if err != nil {
		return b, err
	}
	progs, err := site.Serve(ctx, l, archives)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, progs.Close()) }()
	if err := b.equip(ctx, l, progs, dir); err != nil {
		return b, err
	}
	m := &bench{lab: l, log: o.Log}
	sides := []*Supply{&b.There, &b.HTTP, &b.Bundle}
	for i := range o.Pairs {
		for j := range sides {
			if err := m.supplied(ctx, progs, sides[(i+j)%len(sides)]); err != nil {
				return b, fmt.Errorf("round %d: %w", i+1, err)
			}
		}
		fmt.Fprintf(o.Log, "bare image, round %d: Ready %.2f s with programs, %.2f s over HTTP, %.2f s from a bundle\n", i+1,
			b.There.Runs[i].Ready.Seconds(), b.HTTP.Runs[i].Ready.Seconds(), b.Bundle.Runs[i].Ready.Seconds())
	}
	return b, nil
}

// equip fills in what the nodes find on their disks.
func (b *Bare) equip(ctx context.Context, l *lab.Lab, progs *site.Programs, dir string) error {
	var bytes int64
	for _, blob := range progs.Blobs() {
		bytes += blob.Size
	}
	b.There = Supply{Name: "programs there", node: "there", flavour: lab.Prebaked}
	b.HTTP = Supply{Name: "over HTTP", node: "http", flavour: lab.Bare, requests: len(progs.Blobs()), bytes: bytes}
	b.Bundle = Supply{Name: "from a bundle", node: "bundle", flavour: lab.Bare, bytes: bytes}
	if _, err := b.There.configure(l, func(*aksnodeconfigv1.Configuration) {}); err != nil {
		return err
	}
	if _, err := b.HTTP.configure(l, progs.Configure); err != nil {
		return err
	}
	cfg, err := b.Bundle.configure(l, progs.CutOff)
	if err != nil {
		return err
	}
	b.Bundle.files, err = progs.Bundle(ctx, l, dir, cfg)
	return err
}

func (s *Supply) configure(l *lab.Lab, edit func(*aksnodeconfigv1.Configuration)) (*aksnodeconfigv1.Configuration, error) {
	cfg, err := l.NodeConfiguration()
	if err != nil {
		return nil, err
	}
	edit(cfg)
	s.document, err = nodeconfigutils.Marshal(cfg)
	return cfg, err
}

// supplied provisions a fresh node: nothing of a run is there in the next.
func (b *bench) supplied(ctx context.Context, progs *site.Programs, s *Supply) error {
	c := lab.NodeConfig{Name: s.node, Flavour: s.flavour, UserData: []byte("#cloud-config\n{}\n"), Files: s.files}
	return b.fresh(ctx, c, func(ctx context.Context, n *lab.Node) error {
		if err := n.WriteFile(configPath, s.document, 0o600); err != nil {
			return err
		}
		if err := quiesce(ctx, false); err != nil {
			return err
		}
		progs.Clear()
		run, err := b.timed(ctx, n, provision())
		if err != nil {
			return err
		}
		fetched, err := site.ReadFetched(ctx, n)
		if err != nil {
			return err
		}
		s.Runs = append(s.Runs, Provision{run, fetched})
		return s.check(len(progs.Requests()), fetched.Bytes)
	})
}

// check proves that the bytes came from where they should.
func (s *Supply) check(requests int, bytes int64) error {
	if requests != s.requests || bytes != s.bytes {
		return fmt.Errorf("%s: %d requests and %d bytes, want %d and %d", s.Name, requests, bytes, s.requests, s.bytes)
	}
	return nil
}
