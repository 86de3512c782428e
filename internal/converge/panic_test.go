package converge_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// broken is a host with a defect: it panics in one call.
type broken struct {
	host.Host
	at, path string
}

func (b broken) panics(at, path string) {
	if b.at == at && b.path == path {
		panic("a defect")
	}
}

func (b broken) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	b.panics("unit", name)
	return b.Host.Unit(ctx, name)
}

func (b broken) Readlink(p string) (string, error) {
	b.panics("readlink", p)
	return b.Host.Readlink(p)
}

func (b broken) Xattrs(p string) (map[string][]byte, error) {
	b.panics("xattrs", p)
	return b.Host.Xattrs(p)
}

func (b broken) SyncDir(p string) error {
	b.panics("syncdir", p)
	return b.Host.SyncDir(p)
}

func (b broken) StartUnit(ctx context.Context, name string, ahead ...string) error {
	b.panics("start", name)
	return b.Host.StartUnit(ctx, name, ahead...)
}

// A panic in a worker is the error of its action, with where it happened: the
// process lives on to say so, and lets the next run have the lock.
func TestPanicsAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		at, path string
		id       desired.ID
	}{
		"plan":          {"readlink", "/var/log/azure/latest", "link:/var/log/azure/latest"},
		"plan of units": {"unit", "containerd.service", "unit:containerd.service"},
		"original":      {"xattrs", "/etc/containerd/config.toml", ""},
		"sync of names": {"syncdir", "/etc/containerd", "names"},
		"live":          {"start", "kubelet.service", "unit:kubelet.service"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.PutLink("first.log", "/var/log/azure/latest", 0)
			_, err := engine(broken{h, c.at, c.path}, &providers{}).Apply(t.Context(), sampleState(t))
			p, ok := errors.AsType[*converge.PanicError](err)
			if !ok || !strings.Contains(p.Stack, "panic_test.go") {
				t.Fatalf("error %v, want a panic with its stack", err)
			}
			if act, ok := errors.AsType[*converge.ActionError](err); c.id != "" && (!ok || act.ID != c.id) {
				t.Errorf("error %v, want that of %s", err, c.id)
			}
			if _, err := engine(h, &providers{}).Apply(t.Context(), sampleState(t)); err != nil {
				t.Errorf("the run after it: %v", err)
			}
		})
	}
}

// So is one of the observer, which has no action of its own.
func TestPanicOfTheObserver(t *testing.T) {
	h := newMachine()
	_, err := engine(h, &providers{}, func(o *converge.Options) {
		o.Observer = func(converge.Span) { panic("a defect") }
	}).Apply(t.Context(), sampleState(t))
	if _, ok := errors.AsType[*converge.PanicError](err); !ok {
		t.Fatalf("error %v, want a panic", err)
	}
}
