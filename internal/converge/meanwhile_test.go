package converge_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func sealed(t *testing.T, rs ...desired.Resource) *desired.State {
	t.Helper()
	s := &desired.State{Owner: desired.OwnerAKS}
	s.Add(rs...)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	return s
}

func managed(p, content string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(content), Mode: 0o644, Life: desired.Managed}
}

func started(name string, triggers ...string) *desired.Unit {
	return &desired.Unit{Name: name, Enablement: desired.AnyEnablement, Activation: desired.Started, Triggers: triggers}
}

func runs(t *testing.T, h host.Host, s *desired.State) *converge.Plan {
	t.Helper()
	res, err := engine(h, &providers{}).Apply(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return res.Plan
}

func converged(t *testing.T, h host.Host, s *desired.State) {
	t.Helper()
	if p, err := engine(h, &providers{}).Plan(t.Context(), s); err != nil || !p.Empty() {
		t.Errorf("a second plan has %+v, %v", p, err)
	}
}

// berth's own temporary files in a directory are no change by somebody else.
func TestDirectoryAndFileInItChange(t *testing.T) {
	h := memory.New()
	h.PutDir("/var/lib/kubelet")
	must(h.Chmod("/var/lib/kubelet", 0o750))
	s := sealed(t, &desired.Directory{Path: "/var/lib/kubelet", Mode: 0o755}, managed("/var/lib/kubelet/kubeconfig", "server\n"))
	runs(t, h, s)
	converged(t, h, s)
}

// But another mode is.
func TestDirectoryChangedMeanwhile(t *testing.T) {
	h := memory.New()
	h.PutDir("/etc/kubernetes")
	must(h.Chmod("/etc/kubernetes", 0o700))
	s := sealed(t, &desired.Directory{Path: "/etc/kubernetes", Mode: 0o755}, &desired.Check{Name: desired.CheckAPIServer, Host: "api", Port: 443, Timeout: 1})
	p := &providers{}
	e := engine(h, p, func(o *converge.Options) {
		o.Prober = &meddle{p, func() { must(h.Chmod("/etc/kubernetes", 0o711)) }}
	})
	if _, err := e.Apply(t.Context(), s); !errors.Is(err, converge.ErrChanged) {
		t.Fatalf("error %v", err)
	}
}

// during lets somebody act on the machine while an apply does.
type during struct {
	host.Host
	stop   func()
	start  func()
	rename func(to string)
	record func()
}

func (d *during) StopUnit(ctx context.Context, name string) error {
	if d.stop != nil {
		d.stop()
	}
	return d.Host.StopUnit(ctx, name)
}

func (d *during) StartUnit(ctx context.Context, name string, ahead ...string) error {
	if d.start != nil {
		d.start()
	}
	return d.Host.StartUnit(ctx, name, ahead...)
}

func (d *during) Rename(from, to string) error {
	err := d.Host.Rename(from, to)
	if d.record != nil && to == "/var/lib/berth/ledger.json" {
		d.record()
		d.record = nil
	}
	if d.rename != nil && !strings.HasPrefix(to, "/var/lib/berth/") {
		d.rename(to)
	}
	return err
}

// An edit while a unit stops, which takes a while, is kept, and the ledger does
// not claim what was not put there: the edit is the original of the next run.
func TestChangedWhileAUnitStops(t *testing.T) {
	h := newMachine()
	h.Put("/etc/motd", "image\n", 0o644)
	runs(t, h, sealed(t, started("x.service"), managed("/etc/systemd/system/x.service", containerdUnit), managed("/etc/conf", "1\n")))
	edit := func() {
		h.Put("/etc/conf", "operator\n", 0o644)
		h.Put("/etc/motd", "operator\n", 0o644)
	}
	next := sealed(t, managed("/etc/conf", "2\n"), managed("/etc/motd", "berth\n"))
	_, err := engine(&during{Host: h, stop: edit}, &providers{}).Apply(t.Context(), next)
	if !errors.Is(err, converge.ErrChanged) {
		t.Fatalf("error %v", err)
	}
	has(t, h, "/etc/conf", "operator\n")
	has(t, h, "/etc/motd", "operator\n")
	if left := temporary(h); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	runs(t, h, next)
	converged(t, h, next)
	has(t, h, "/etc/motd", "berth\n")
	runs(t, h, sealed(t))
	has(t, h, "/etc/motd", "operator\n")
}

func has(t *testing.T, h *machine, p, want string) {
	t.Helper()
	if got, err := h.ReadFile(p); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", p, got, err, want)
	}
}

func temporary(h *machine) []string {
	var out []string
	for p := range h.Tree() {
		if strings.Contains(p, "/.berth.") {
			out = append(out, p)
		}
	}
	return out
}

// Each name is looked at right before it changes.
func TestChangedWhileNamesChange(t *testing.T) {
	h := newMachine()
	first := sealed(t, managed("/etc/a", "1\n"), managed("/etc/b", "1\n"))
	runs(t, h, first)
	d := &during{Host: h, rename: func(to string) {
		if to == "/etc/a" {
			h.Put("/etc/b", "operator\n", 0o644)
		}
	}}
	next := sealed(t, managed("/etc/a", "2\n"), managed("/etc/b", "2\n"))
	if _, err := engine(d, &providers{}).Apply(t.Context(), next); !errors.Is(err, converge.ErrChanged) {
		t.Fatalf("error %v", err)
	}
	has(t, h, "/etc/b", "operator\n")
	runs(t, h, next)
	converged(t, h, next)
}

// Links that enable units come last, when units have started.
func TestEnablementChangedWhileUnitsStart(t *testing.T) {
	h := newMachine()
	link := "/etc/systemd/system/multi-user.target.wants/containerd.service"
	u := &desired.Unit{Name: "containerd.service", Enablement: desired.Enabled, Activation: desired.Started}
	d := &during{Host: h, start: func() { h.Put(link, "operator\n", 0o644) }}
	if _, err := engine(d, &providers{}).Apply(t.Context(), sealed(t, u)); !errors.Is(err, converge.ErrChanged) {
		t.Fatalf("error %v", err)
	}
	has(t, h, link, "operator\n")
}

// The same holds on a machine that has no ledger yet.
func TestChangedWhileOriginalsAreKept(t *testing.T) {
	h := newMachine()
	h.Put("/etc/motd", "image\n", 0o644)
	d := &during{Host: h, record: func() { h.Put("/etc/motd", "operator\n", 0o644) }}
	next := sealed(t, managed("/etc/motd", "berth\n"))
	if _, err := engine(d, &providers{}).Apply(t.Context(), next); !errors.Is(err, converge.ErrChanged) {
		t.Fatalf("error %v", err)
	}
	runs(t, h, next)
	runs(t, h, sealed(t))
	has(t, h, "/etc/motd", "operator\n")
}

// A directory that is to go and gets an entry stays.
func TestDirectoryFilledMeanwhile(t *testing.T) {
	h := newMachine()
	runs(t, h, sealed(t, started("x.service"), managed("/etc/systemd/system/x.service", containerdUnit), &desired.Directory{Path: "/etc/d", Mode: 0o755}))
	d := &during{Host: h, stop: func() { h.Put("/etc/d/new", "operator\n", 0o644) }}
	if _, err := engine(d, &providers{}).Apply(t.Context(), sealed(t)); !errors.Is(err, converge.ErrChanged) {
		t.Fatalf("error %v", err)
	}
	has(t, h, "/etc/d/new", "operator\n")
	runs(t, h, sealed(t))
	converged(t, h, sealed(t))
}
