package hosttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// watchCases need nothing but files.
var watchCases = []testCase{
	{"watch: a file", watchFile},
	{"watch: parents that come and go", watchParents},
	{"watch: a directory is replaced", watchReplaced},
	{"watch: entries of a directory", watchEntries},
	{"watch: through a link", watchLink},
	{"watch: ends", watchEnds},
	{"watch: a reader that is slow", watchSlow},
}

// watchUnitCases need a service manager.
var watchUnitCases = []testCase{
	{"watch: a unit", watchUnit},
	{"watch: a unit that comes", watchUnitComes},
	{"watch: alias", watchAlias},
	{"watch: systemd executes itself anew", watchReexec},
}

// watch begins to watch until the test ends.
func watch(t *testing.T, h host.Watcher, w host.Watched) <-chan host.Event {
	t.Helper()
	events, err := h.Watch(t.Context(), w)
	must(t, err)
	return events
}

// next is the next event.
func next(t *testing.T, events <-chan host.Event) host.Event {
	t.Helper()
	select {
	case e, more := <-events:
		if !more {
			t.Fatal("no events any more")
		}
		return e
	case <-time.After(soon):
		t.Fatal("no event")
	}
	return host.Event{}
}

// tells wants an event of a name, and drops what else is told of it meanwhile.
func tells(t *testing.T, events <-chan host.Event, what string, want host.Event) {
	t.Helper()
	if got := next(t, events); got != want {
		t.Fatalf("%s: told %+v, want %+v", what, got, want)
	}
	for {
		select {
		case got := <-events:
			if got != want {
				t.Fatalf("%s: told %+v, want nothing but %+v", what, got, want)
			}
		case <-time.After(drained):
			return
		}
	}
}

// drained is how long nothing must come for a change to be over.
const drained = 10 * time.Millisecond

// silent does something that must not be told of, and then something that must:
// events come in the order of the changes.
func silent(t *testing.T, events <-chan host.Event, what string, quiet, mark func(), before, after host.Event) {
	t.Helper()
	mark()
	for next(t, events) != before {
		continue // what came before
	}
	quiet()
	mark()
	for e := next(t, events); e != after; e = next(t, events) {
		if e != before {
			t.Errorf("%s: told %+v", what, e)
		}
	}
}

func watchFile(t *testing.T, h host.Host, dir string) {
	f := host.Event{Name: dir + "/f"}
	put(t, h, dir+"/other", "1")
	events := watch(t, h, host.Watched{Names: []string{f.Name}})
	put(t, h, dir+"/other", "2")
	put(t, h, f.Name, "1")
	tells(t, events, "created", f)
	put(t, h, f.Name, "2")
	tells(t, events, "replaced", f)
	must(t, h.Chmod(dir+"/other", 0o600))
	must(t, h.Chmod(f.Name, 0o600))
	tells(t, events, "attributes", f)
	w, err := h.(host.Appender).Append(f.Name)
	must(t, err)
	_, err = w.Write([]byte("3"))
	must(t, errors.Join(err, w.Close()))
	tells(t, events, "written", f)
	must(t, h.Rename(f.Name, dir+"/g"))
	tells(t, events, "moved away", f)
	must(t, h.Rename(dir+"/g", f.Name))
	tells(t, events, "moved back", f)
	must(t, h.Remove(f.Name))
	tells(t, events, "removed", f)
}

func watchParents(t *testing.T, h host.Host, dir string) {
	f := host.Event{Name: dir + "/a/b/f"}
	events := watch(t, h, host.Watched{Names: []string{f.Name}})
	for range 2 {
		_, err := host.MkdirAll(h, dir+"/a/b")
		must(t, err)
		put(t, h, f.Name, "1")
		tells(t, events, "created with its parents", f)
		put(t, h, f.Name, "2")
		tells(t, events, "replaced", f)
		for _, p := range []string{f.Name, dir + "/a/b", dir + "/a"} {
			must(t, h.Remove(p))
		}
		tells(t, events, "removed with its parents", f)
	}
}

func watchReplaced(t *testing.T, h host.Host, dir string) {
	f := host.Event{Name: dir + "/a/b/f"}
	for _, p := range []string{dir + "/a/b", dir + "/new/b"} {
		_, err := host.MkdirAll(h, p)
		must(t, err)
	}
	put(t, h, f.Name, "1")
	put(t, h, dir+"/new/b/f", "2")
	marks := []string{dir + "/m1", dir + "/m2"}
	events := watch(t, h, host.Watched{Names: append(marks, f.Name)})
	must(t, h.Rename(dir+"/a", dir+"/old"))
	must(t, h.Rename(dir+"/new", dir+"/a"))
	tells(t, events, "directory replaced", f)
	mark := markers(func(i int) { put(t, h, marks[i], "") })
	elsewhere := func() {
		put(t, h, dir+"/old/b/f", "nobody watches this any more")
		put(t, h, dir+"/old/b/g", "")
	}
	silent(t, events, "what is elsewhere now", elsewhere, mark, host.Event{Name: marks[0]}, host.Event{Name: marks[1]})
	put(t, h, f.Name, "3")
	for next(t, events) != f {
		continue // of the marks
	}
}

// markers makes one mark after the other.
func markers(do func(i int)) func() {
	i := -1
	return func() {
		i++
		do(i)
	}
}

func watchEntries(t *testing.T, h host.Host, dir string) {
	d := host.Event{Name: dir + "/x.d"}
	events := watch(t, h, host.Watched{Names: []string{d.Name}})
	must(t, h.Mkdir(d.Name, 0o755))
	tells(t, events, "created", d)
	put(t, h, d.Name+"/10-a.conf", "1")
	tells(t, events, "first entry", d)
	must(t, h.Remove(d.Name+"/10-a.conf"))
	tells(t, events, "entry gone", d)
	must(t, h.Remove(d.Name))
	tells(t, events, "removed", d)
	must(t, h.Mkdir(d.Name, 0o755))
	put(t, h, d.Name+"/20-b.conf", "1")
	tells(t, events, "created again", d)
}

func watchLink(t *testing.T, h host.Host, dir string) {
	f := host.Event{Name: dir + "/l/f"}
	for _, d := range []string{"/one", "/two"} {
		must(t, h.Mkdir(dir+d, 0o755))
	}
	must(t, h.Symlink("one", dir+"/l"))
	events := watch(t, h, host.Watched{Names: []string{f.Name}})
	put(t, h, dir+"/two/f", "1")
	put(t, h, dir+"/one/f", "1")
	tells(t, events, "created", f)
	must(t, h.Symlink("two", dir+"/next"))
	must(t, h.Rename(dir+"/next", dir+"/l"))
	tells(t, events, "link leads elsewhere", f)
	put(t, h, dir+"/two/f", "2")
	tells(t, events, "replaced", f)
}

func watchEnds(t *testing.T, h host.Host, dir string) {
	ctx, cancel := context.WithCancel(t.Context())
	events, err := h.Watch(ctx, host.Watched{Names: []string{dir + "/f"}})
	must(t, err)
	put(t, h, dir+"/f", "1")
	cancel()
	for end := time.After(soon); ; {
		select {
		case _, more := <-events:
			if !more {
				return
			}
		case <-end:
			t.Fatal("the channel is open")
		}
	}
}

// watchSlow: however much happens, a reader that looks late is told little.
func watchSlow(t *testing.T, h host.Host, dir string) {
	f := host.Event{Name: dir + "/f"}
	events := watch(t, h, host.Watched{Names: []string{f.Name}})
	for range 200 {
		put(t, h, f.Name, "1")
	}
	time.Sleep(2 * short)
	told := 0
	for quiet := false; !quiet; {
		select {
		case <-events:
			told++
		case <-time.After(2 * short):
			quiet = true
		}
	}
	if told == 0 || told > 50 {
		t.Errorf("told %d times of 200 changes", told)
	}
}

const watchedUnit = "berth-conformance-watched.service"

// toldOf wants the unit's event, once or more often.
func toldOf(t *testing.T, events <-chan host.Event, what, unit string) {
	t.Helper()
	tells(t, events, what, host.Event{Unit: unit})
}

func watchUnit(t *testing.T, h host.Host, _ string) {
	const other = "berth-conformance-other.service"
	define(t, h, map[string]string{watchedUnit: sleeper, other: sleeper})
	events := watch(t, h, host.Watched{Units: []string{watchedUnit}})
	start(t, h, other, watchedUnit)
	toldOf(t, events, "started", watchedUnit)
	must(t, h.StopUnit(t.Context(), other))
	must(t, h.RestartUnit(t.Context(), watchedUnit))
	toldOf(t, events, "restarted", watchedUnit)
	_, err := h.Run(t.Context(), host.Command{Path: "systemctl", Args: []string{"kill", "--signal=KILL", watchedUnit}})
	must(t, err)
	toldOf(t, events, "killed", watchedUnit)
	reload(t, h)
	toldOf(t, events, "reloaded", watchedUnit)
	start(t, h, watchedUnit)
	toldOf(t, events, "started again", watchedUnit)
	must(t, h.StopUnit(t.Context(), watchedUnit))
	toldOf(t, events, "stopped", watchedUnit)
}

// watchUnitComes: to look at a unit is no change of it, even where systemd loads
// it for that.
func watchUnitComes(t *testing.T, h host.Host, _ string) {
	marks := []string{"berth-conformance-m1.service", "berth-conformance-m2.service"}
	define(t, h, map[string]string{marks[0]: sleeper, marks[1]: sleeper})
	events := watch(t, h, host.Watched{Units: append(marks, watchedUnit)})
	put(t, h, definition(watchedUnit), sleeper)
	t.Cleanup(func() {
		_ = h.StopUnit(context.Background(), watchedUnit)
		_ = h.Remove(definition(watchedUnit))
		_ = h.DaemonReload(context.Background())
	})
	look := func() {
		for range 3 {
			state(t, h, watchedUnit, "loaded", "inactive", "dead")
		}
	}
	mark := markers(func(i int) { start(t, h, marks[i]) })
	silent(t, events, "looked at", look, mark, host.Event{Unit: marks[0]}, host.Event{Unit: marks[1]})
	start(t, h, watchedUnit)
	for next(t, events).Unit != watchedUnit {
		continue // of the marks
	}
}

func watchAlias(t *testing.T, h host.Host, _ string) {
	const nick = "berth-conformance-nick.service"
	define(t, h, map[string]string{watchedUnit: sleeper})
	events := watch(t, h, host.Watched{Units: []string{nick}})
	addLink(t, h, nick, watchedUnit)
	reload(t, h)
	toldOf(t, events, "reloaded", nick)
	until(t, h, nick, func(st host.UnitStatus) bool { return st.ID == watchedUnit })
	start(t, h, watchedUnit)
	toldOf(t, events, "started by its real name", nick)
}

// watchReexec: the loss of systemd is told, and what happens afterwards.
func watchReexec(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{watchedUnit: sleeper})
	events := watch(t, h, host.Watched{Units: []string{watchedUnit}})
	_, err := h.Run(t.Context(), host.Command{Path: "systemctl", Args: []string{"daemon-reexec"}})
	must(t, err)
	for e := next(t, events); !e.Missed; {
		e = next(t, events)
	}
	start(t, h, watchedUnit)
	for e := next(t, events); e.Unit != watchedUnit; {
		e = next(t, events)
	}
	state(t, h, watchedUnit, "loaded", "active", "running")
}
