package bench

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/berth-dev/berth/lab/internal/build"
	"github.com/berth-dev/berth/lab/internal/cache"
	"github.com/berth-dev/berth/lab/internal/hostdeps"
	"github.com/berth-dev/berth/lab/internal/progress"
)

// archive is a tar.gz that is served.
type archive struct {
	Name, URL string
	Members   []string
	sum       string
	bytes     int64
}

// fetched is what berth's side of a run says of itself.
type fetched struct {
	Seconds   float64
	PeakBytes int64
	Cached    int
}

// Fetching is one comparison of downloads.
type Fetching struct {
	Name               string
	Bytes              int64
	Shell, Cold, Again []time.Duration
	PeakBytes          int64
}

// pipeline is what the shell does: download, digest and unpacking at once, one
// archive after the other.
const pipeline = `set -euo pipefail
curl -sSf "$1" | tee >(sha256sum >"$2.sum") | tar xz -C "$2"
until [ -s "$2.sum" ]; do sleep 0.001; done
grep -q "^$3 " "$2.sum"`

// Artifacts compares berth's downloads with the shell's, in pairs in turn: one
// large archive, then ten together.
func Artifacts(ctx context.Context, o Options, w io.Writer) error {
	b, err := newYard(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	for _, c := range []struct {
		name     string
		archives []archive
	}{{"one large archive", b.archives[:1]}, {"ten archives together", b.archives[1:]}} {
		f := Fetching{Name: c.name}
		for _, a := range c.archives {
			f.Bytes += a.bytes
		}
		for i := range max(o.Pairs, 10) {
			if err := b.pair(ctx, &f, c.archives, i%2 == 1); err != nil {
				return fmt.Errorf("%s, pair %d: %w", c.name, i+1, err)
			}
		}
		f.print(w)
	}
	return nil
}

func (f *Fetching) print(w io.Writer) {
	shell, cold, again := summarise(f.Shell), summarise(f.Cold), summarise(f.Again)
	fmt.Fprintf(w, "\n%s, %.0f MB (%d pairs; median, min–max, seconds)\n", f.Name, float64(f.Bytes)/1e6, len(f.Cold))
	fmt.Fprintf(w, "  curl | tee | tar %s   berth %s   ratio %.2f\n", shell, cold, cold.Median.Seconds()/shell.Median.Seconds())
	fmt.Fprintf(w, "  berth again, out of its cache %s   bound 0.050\n", again)
	fmt.Fprintf(w, "  berth's largest resident set %.0f MB   bound 64 MB\n", float64(f.PeakBytes)/1e6)
}

// yard is where archives are served from and unpacked to.
type yard struct {
	dir, program string
	archives     []archive
	server       *http.Server
}

func newYard(ctx context.Context, o Options) (*yard, error) {
	log := &progress.Log{W: o.Log}
	if err := hostdeps.Bench(ctx, log); err != nil {
		return nil, err
	}
	c, err := cache.Open(log)
	if err != nil {
		return nil, err
	}
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	programs, err := build.Kubernetes(ctx, c, filepath.Join(root, "lab"))
	if err != nil {
		return nil, err
	}
	// Not /tmp, which may be memory.
	dir, err := os.MkdirTemp("/var/tmp", "berth-bench-")
	if err != nil {
		return nil, err
	}
	b := &yard{dir: dir, program: filepath.Join(dir, "stagebench")}
	err = b.fill(ctx, root, programs)
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *yard) close() {
	if b.server != nil {
		_ = b.server.Close()
	}
	_ = os.RemoveAll(b.dir)
}

func (b *yard) fill(ctx context.Context, root, programs string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.program, "./internal/artifact/stagebench")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	names := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeadm", "kubectl", "kubelet", "etcd"}
	var large []string
	for range 2 {
		for _, n := range names {
			large = append(large, filepath.Join(programs, n))
		}
	}
	if err := b.pack("large", large); err != nil {
		return err
	}
	for i := range 10 {
		if err := b.pack(fmt.Sprintf("a%d", i), []string{filepath.Join(programs, names[i%len(names)])}); err != nil {
			return err
		}
	}
	return b.serve()
}

// pack makes an archive of programs.
func (b *yard) pack(name string, programs []string) error {
	f, err := os.Create(filepath.Join(b.dir, name+".tar.gz"))
	if err != nil {
		return err
	}
	sum := sha256.New()
	z := gzip.NewWriter(io.MultiWriter(f, sum))
	t := tar.NewWriter(z)
	a := archive{Name: name}
	for i, p := range programs {
		member := fmt.Sprintf("%s-%d", filepath.Base(p), i)
		a.Members = append(a.Members, member)
		if err := add(t, p, member); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return errors.Join(err, f.Close())
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	a.sum, a.bytes = hex.EncodeToString(sum.Sum(nil)), info.Size()
	b.archives = append(b.archives, a)
	return f.Close()
}

func add(t *tar.Writer, p, member string) error {
	f, err := os.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: member, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

func (b *yard) serve() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.server = &http.Server{Handler: http.FileServer(http.Dir(b.dir)), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = b.server.Serve(l) }()
	for i := range b.archives {
		b.archives[i].URL = fmt.Sprintf("http://%s/%s.tar.gz", l.Addr(), b.archives[i].Name)
	}
	return nil
}

func (b *yard) pair(ctx context.Context, f *Fetching, archives []archive, berthFirst bool) error {
	sides := []func() error{
		func() error { return b.shell(ctx, f, archives) },
		func() error { return b.berth(ctx, f, archives) },
	}
	if berthFirst {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for _, side := range sides {
		if err := side(); err != nil {
			return err
		}
	}
	return nil
}

// clean gives a side an empty directory and a disk at rest.
func (b *yard) clean(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	err := os.MkdirAll(filepath.Join(dir, "var/lib"), 0o755)
	syscall.Sync()
	return dir, err
}

func (b *yard) shell(ctx context.Context, f *Fetching, archives []archive) error {
	dir, err := b.clean("shell")
	if err != nil {
		return err
	}
	start := time.Now()
	for _, a := range archives {
		out, err := exec.CommandContext(ctx, "bash", "-c", pipeline, "pipeline", a.URL, dir, a.sum).CombinedOutput()
		if err != nil {
			return fmt.Errorf("curl: %w\n%s", err, out)
		}
		if err := os.Remove(dir + ".sum"); err != nil {
			return err
		}
	}
	f.Shell = append(f.Shell, time.Since(start))
	return os.RemoveAll(dir)
}

func (b *yard) berth(ctx context.Context, f *Fetching, archives []archive) error {
	dir, err := b.clean("berth")
	if err != nil {
		return err
	}
	took, got, err := b.stage(ctx, dir, archives)
	if err != nil {
		return err
	}
	f.Cold = append(f.Cold, took)
	f.PeakBytes = max(f.PeakBytes, got.PeakBytes)
	if err := os.RemoveAll(filepath.Join(dir, "opt")); err != nil {
		return err
	}
	took, got, err = b.stage(ctx, dir, archives)
	if err == nil && got.Cached != len(archives) {
		err = fmt.Errorf("%d of %d out of the cache", got.Cached, len(archives))
	}
	f.Again = append(f.Again, took)
	return errors.Join(err, os.RemoveAll(dir))
}

// stage runs berth's side in a process of its own.
func (b *yard) stage(ctx context.Context, dir string, archives []archive) (time.Duration, fetched, error) {
	var got fetched
	orders := make([]archive, len(archives))
	for i, a := range archives {
		a.URL += "#sha256=" + a.sum
		orders[i] = a
	}
	in, err := json.Marshal(orders)
	if err != nil {
		return 0, got, err
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, b.program, dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &said
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, got, fmt.Errorf("berth: %w: %s", err, strings.TrimSpace(said.String()))
	}
	took := time.Since(start)
	return took, got, json.Unmarshal(out.Bytes(), &got)
}
