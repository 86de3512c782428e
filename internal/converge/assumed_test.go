package converge_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// oldOnce is a systemd that starts a service by an old definition, and says so, until it is
// told to read them again.
type oldOnce struct {
	host.Host
	name  string
	says  func(*host.UnitStatus)
	calls []string
}

func (o *oldOnce) note(call, name string) {
	if name == o.name || name == "" {
		o.calls = append(o.calls, call)
	}
}

func (o *oldOnce) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	o.note("unit", name)
	return o.Host.Unit(ctx, name)
}

func (o *oldOnce) State(ctx context.Context, name string) (host.UnitStatus, error) {
	o.note("state", name)
	st, err := o.Host.State(ctx, name)
	if name == o.name && o.says != nil {
		o.says(&st)
	}
	return st, err
}

func (o *oldOnce) StartUnit(ctx context.Context, name string, ahead ...string) error {
	o.note("start", name)
	return o.Host.StartUnit(ctx, name, ahead...)
}

func (o *oldOnce) RestartUnit(ctx context.Context, name string) error {
	o.note("restart", name)
	return o.Host.RestartUnit(ctx, name)
}

func (o *oldOnce) DaemonReload(ctx context.Context) error {
	o.note("reload", "")
	o.says = nil
	return o.Host.DaemonReload(ctx)
}

// A service that systemd has not loaded is not asked for before its start, and restarted if
// systemd then says that it read something else than what is on the disk.
func TestStartOfWhatIsNotLoaded(t *testing.T) {
	const name, at, drop = "new.service", "/etc/systemd/system/new.service", "/etc/systemd/system/new.service.d/a.conf"
	again := []string{"start", "state", "reload", "unit", "restart", "state"}
	for what, c := range map[string]struct {
		says func(*host.UnitStatus)
		want []string
	}{
		"as it is":           {nil, []string{"start", "state"}},
		"old":                {func(st *host.UnitStatus) { st.NeedDaemonReload = true }, again},
		"another definition": {func(st *host.UnitStatus) { st.FragmentPath = "/usr/lib/systemd/system/new.service" }, again},
		"without a drop-in":  {func(st *host.UnitStatus) { st.DropInPaths = nil }, again},
	} {
		t.Run(what, func(t *testing.T) {
			h := newMachine()
			st := sealed(t, managed(at, "[Service]\nExecStart=/opt/bin/kubelet\n"), managed(drop, "[Service]\nNice=1\n"), started(name))
			o := &oldOnce{Host: h, name: name, says: c.says}
			e := converge.New(converge.Options{Host: o, Command: "test", Workers: 1})
			if _, err := e.Apply(t.Context(), st); err != nil {
				t.Fatal(err)
			}
			from := slices.Index(o.calls, "start")
			if from < 0 || slices.Contains(o.calls[:from], "reload") {
				t.Fatal(o.calls)
			}
			got := o.calls[from:min(len(o.calls), from+len(c.want))]
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := slices.Index(o.calls[1:], "unit"); n >= 0 && n+1 < from {
				t.Errorf("asked for more than by the plan before the start: %v", o.calls)
			}
			converged(t, h, st)
		})
	}
}

// A drop-in that the plan knows nothing of, and systemd does, is part of what the service was
// started with.
func TestStartWithUnknownDropIn(t *testing.T) {
	const name, at, foreign = "new.service", "/etc/systemd/system/new.service", "/run/elsewhere/x.conf"
	h := newMachine()
	h.Put(foreign, "[Service]\nNice=2\n", 0o644)
	st := sealed(t, managed(at, "[Service]\nExecStart=/opt/bin/kubelet\n"), started(name))
	o := &oldOnce{Host: h, name: name, says: func(st *host.UnitStatus) { st.DropInPaths = []string{foreign} }}
	if _, err := converge.New(converge.Options{Host: o, Command: "test", Workers: 1}).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	text, err := h.ReadFile(ledger.StampDir + "/" + name)
	var stamp struct{ Definition map[string]string }
	if err = errors.Join(err, json.Unmarshal(text, &stamp)); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(o.calls, "restart") || stamp.Definition[foreign] == "" || stamp.Definition[at] == "" {
		t.Errorf("%v, stamped as %s", o.calls, text)
	}
}
