package unitlife_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/machine"
	"github.com/berth-dev/berth/internal/host/memory"
)

// tctx is for looking at machines, where no test's context is at hand.
var tctx = context.Background()

// inMachine says that the tests run as root in a machine with systemd.
func inMachine() bool { return os.Getenv("BERTH_CONFORMANCE") == "machine" || ownKernel() }

// ownKernel says that the machine is no container: then the lives are those that a
// container can't live.
func ownKernel() bool { return os.Getenv("BERTH_CONFORMANCE") == "kernel" }

const (
	admin  = "/etc/systemd/system/"
	vendor = "/usr/lib/systemd/system/"
	// data is for what units read, marks for what their programs leave.
	data  = "/etc/life/"
	marks = "/run/life"
)

// world is a machine that shows how often programs of units ran.
type world struct {
	host.Host
	// model is the machine in memory; nil on a real one.
	model *memory.Host
	// late is by how much the clock of a real one was set back.
	late time.Duration
	// reloads counts how often systemd was asked to read all definitions anew.
	reloads int
}

// DaemonReload implements host.Systemd.
func (w *world) DaemonReload(ctx context.Context) error {
	w.reloads++
	return w.Host.DaemonReload(ctx)
}

func modelled() *world {
	h := memory.New()
	for _, p := range []string{"/usr/bin/sleep", "/usr/bin/mktemp", "/usr/bin/true"} {
		h.Put(p, "", 0o755)
	}
	h.Program("/usr/bin/false", func(host.Command) host.Output { return host.Output{ExitCode: 1} })
	h.Behave("life-crash.service", func(memory.Start) memory.Outcome {
		if broken, err := h.ReadFile(data + "broken"); err == nil && len(broken) > 0 {
			return memory.Outcome{Status: 1}
		}
		return memory.Outcome{}
	})
	return &world{Host: h, model: h}
}

func real(t *testing.T) *world {
	h, err := machine.New("/")
	if err != nil {
		t.Fatal(err)
	}
	return &world{Host: h}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// arrange puts what a distribution or an administrator has, and reads it.
func (w *world) arrange(l *life) {
	_, err := host.MkdirAll(w, marks)
	must(err)
	for _, name := range slices.Sorted(maps.Keys(l.there)) {
		content := l.there[name]
		_, err := host.MkdirAll(w, path.Dir(name))
		must(err)
		if target, isLink := strings.CutPrefix(content, "-> "); isLink {
			must(w.Symlink(target, name))
			continue
		}
		must(host.WriteFile(w, name, []byte(content), host.Attributes{Mode: 0o644}))
	}
	must(w.DaemonReload(tctx))
	for _, name := range l.running {
		must(w.StartUnit(tctx, name))
	}
	w.rest()
}

// await waits until a unit is in a state.
func (w *world) await(name, state string) {
	st, err := w.Unit(tctx, name)
	for range 200 {
		must(err)
		if st.ActiveState == state {
			return
		}
		must(w.Sleep(tctx, 50*time.Millisecond))
		st, err = w.Unit(tctx, name)
	}
	panic(name + " stays " + st.ActiveState)
}

// edit is somebody else's change of a file.
func (w *world) edit(p, content string) {
	must(host.WriteFile(w, p, []byte(content), host.Attributes{Mode: 0o644}))
}

// clear takes away what a life left: the units that run on, what was there before
// it, and, where it failed, all that berth put there.
func (w *world) clear(l *life, failed bool) {
	if w.late > 0 {
		setClock(w.late)
	}
	if failed {
		for _, o := range []desired.Owner{desired.OwnerAKS, desired.OwnerOSC} {
			_, _ = w.apply(&desired.State{Owner: o})
		}
	}
	for name, st := range w.loaded(l.units()) {
		if st.ActiveState != "inactive" {
			_ = w.StopUnit(tctx, name)
			_ = w.ResetFailed(tctx, name)
		}
	}
	for name := range l.there {
		_ = w.Remove(name)
		_ = w.Remove(path.Dir(name)) // fails where others are in it
	}
	names, _ := w.ReadDir(marks)
	for _, n := range names {
		_ = w.Remove(marks + "/" + n)
	}
}

// rest lets a minute pass where time is a model's, and makes all durable.
func (w *world) rest() {
	if w.model != nil {
		w.model.Advance(time.Minute)
		w.model.Flush()
	}
}

func (w *world) engine(on host.Host) *converge.Engine {
	return converge.New(converge.Options{Host: on, Command: "life", Workers: 1, LockTimeout: time.Second})
}

func (w *world) apply(s *desired.State) (*converge.Result, error) {
	return w.engine(w).Apply(tctx, s)
}

// runs counts how often the programs of services ran since the machine was
// arranged, and how often they reloaded ("reload NAME").
func (w *world) runs() map[string]int {
	out := map[string]int{}
	if w.model == nil {
		names, err := w.ReadDir(marks)
		must(err)
		for _, n := range names {
			what := strings.TrimSuffix(n, path.Ext(n))
			out[strings.Replace(what, "reload-", "reload ", 1)]++
		}
		return out
	}
	for _, j := range w.model.Jobs() {
		switch {
		case path.Ext(j.Unit) != ".service" || j.Verb == "stop":
		case j.Verb == "reload":
			out["reload "+j.Unit]++
		default:
			out[j.Unit]++
		}
	}
	return out
}

// since is how often more than before.
func since(before, now map[string]int) map[string]int {
	out := map[string]int{}
	for name, n := range now {
		if n > before[name] {
			out[name] = n - before[name]
		}
	}
	return out
}

// snapshot is what a withdrawal gives back: the tree, and what runs.
func (w *world) snapshot(l *life) map[string]string {
	out := map[string]string{}
	for _, dir := range []string{admin, data, "/run/systemd/system", "/usr/local/lib/systemd/system"} {
		w.walk(path.Clean(dir), out)
	}
	names, err := w.ReadDir(path.Clean(vendor))
	must(err)
	for _, n := range names {
		if strings.HasPrefix(n, "life") {
			w.walk(vendor+n, out)
		}
	}
	for name, st := range w.loaded(l.units()) {
		if st.ActiveState != "inactive" && !l.lasting(name) {
			out[name] = st.ActiveState
		}
	}
	return out
}

// walk describes what is at and below a path.
func (w *world) walk(p string, out map[string]string) {
	info, err := w.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(err)
	switch {
	case info.Mode.IsDir():
		out[p] = info.Mode.String()
		names, err := w.ReadDir(p)
		must(err)
		for _, n := range names {
			w.walk(p+"/"+n, out)
		}
	case info.IsRegular():
		content, err := w.ReadFile(p)
		must(err)
		out[p] = info.Mode.String() + " " + string(content)
	default:
		target, _ := w.Readlink(p)
		out[p] = info.Mode.String() + " -> " + target
	}
}

// loaded describes those units that systemd has loaded; the others it is not
// asked for, since that would make it load them.
func (w *world) loaded(names []string) map[string]host.UnitStatus {
	out := map[string]host.UnitStatus{}
	list, err := w.ListUnits(tctx, names...)
	must(err)
	for _, u := range list {
		if slices.Contains(names, u.Name) {
			st, err := w.Unit(tctx, u.Name)
			must(err)
			out[u.Name] = st
		}
	}
	return out
}

// ids are the runs of units that are no services.
func (w *world) ids(l *life) map[string]string {
	out := map[string]string{}
	for name, st := range w.loaded(l.units()) {
		if path.Ext(name) != ".service" && st.InvocationID != "" {
			out[name] = st.InvocationID
		}
	}
	return out
}
