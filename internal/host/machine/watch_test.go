package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// TestOverflowIsSaid: when the kernel's queue was full everything must be looked
// at, and is watched anew.
func TestOverflowIsSaid(t *testing.T) {
	root := t.TempDir()
	h, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	q := host.NewEvents()
	w, err := h.(*Host).newNameWatch([]string{"/d/f"}, q.Post)
	if err != nil {
		t.Fatal(err)
	}
	go w.run(t.Context())
	events := q.Deliver(t.Context())
	w.notify.Errors <- fsnotify.ErrEventOverflow
	if e := <-events; e != (host.Event{Missed: true}) {
		t.Fatalf("told %+v", e)
	}
	if err := os.Mkdir(filepath.Join(root, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e != (host.Event{Name: "/d/f"}) {
		t.Errorf("told %+v", e)
	}
}

// TestWatchBelowTheTop: of what lies directly below / fsnotify says //name.
func TestWatchBelowTheTop(t *testing.T) {
	h, err := New("/")
	if err != nil {
		t.Fatal(err)
	}
	q := host.NewEvents()
	w, err := h.(*Host).newNameWatch([]string{"/berth-not-there/f"}, q.Post)
	if err != nil {
		t.Fatal(err)
	}
	go w.run(t.Context())
	events := q.Deliver(t.Context())
	w.notify.Events <- fsnotify.Event{Name: "//berth-not-there", Op: fsnotify.Create}
	select {
	case e := <-events:
		if e != (host.Event{Name: "/berth-not-there/f"}) {
			t.Errorf("told %+v", e)
		}
	case <-time.After(5 * time.Second):
		t.Error("nothing is told")
	}
}

// TestWatchIsTriedAgain: what could not be watched when it was replaced is watched later,
// also where nothing tells that it can be.
func TestWatchIsTriedAgain(t *testing.T) {
	root := t.TempDir()
	at := func(p string) string { return filepath.Join(root, p) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(os.Mkdir(at("good"), 0o755), os.Symlink("/good", at("d")), os.Mkdir(at("other"), 0o755)))
	h, err := New(root)
	must(err)
	q := host.NewEvents()
	w, err := h.(*Host).newNameWatch([]string{"/d/f"}, q.Post)
	must(err)
	events := q.Deliver(t.Context())
	must(errors.Join(os.Symlink("loop", at("other/loop")), os.Symlink("/other/loop", at("other/d")), os.Rename(at("other/d"), at("d"))))
	w.event(<-w.notify.Events)
	if w.again == nil {
		t.Fatal("it is watched, or never tried again")
	}
	for _, want := range []host.Event{{Missed: true}, {Name: "/d/f"}} {
		if e := <-events; e != want {
			t.Errorf("told %+v, want %+v", e, want)
		}
	}
	must(errors.Join(os.Remove(at("other/loop")), os.Mkdir(at("other/loop"), 0o755)))
	due := make(chan time.Time, 1)
	due <- time.Now()
	w.again = due
	go w.run(t.Context())
	if e := <-events; e != (host.Event{Missed: true}) {
		t.Errorf("told %+v", e)
	}
	must(os.WriteFile(at("other/loop/f"), nil, 0o600))
	select {
	case e := <-events:
		if e != (host.Event{Name: "/d/f"}) {
			t.Errorf("told %+v", e)
		}
	case <-time.After(5 * time.Second):
		t.Error("nothing is told")
	}
}

// TestWatchIsPrompt: whoever waits for a name is awake within 50 ms.
func TestWatchIsPrompt(t *testing.T) {
	root := t.TempDir()
	h, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 100 { // a busy machine may be late now and then
		names = append(names, fmt.Sprintf("/%d", i))
	}
	events, err := h.Watch(t.Context(), host.Watched{Names: names})
	if err != nil {
		t.Fatal(err)
	}
	best := time.Hour
	for _, name := range names {
		began := time.Now()
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for (<-events).Name != name {
			continue // the one before, once more
		}
		if best = min(best, time.Since(began)); best <= 50*time.Millisecond {
			return
		}
	}
	t.Errorf("woke after %s", best)
}

// TestWatchRefuses what can't be watched, and leaves no watch behind.
func TestWatchRefuses(t *testing.T) {
	h, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		watched host.Watched
		want    error
	}{
		{host.Watched{Names: []string{"relative"}}, syscall.EINVAL},
		{host.Watched{Units: []string{"x.service"}}, host.ErrNoSystemd},
		{host.Watched{Units: []string{"x@.service"}}, host.ErrNotAUnit},
	} {
		events, err := h.Watch(t.Context(), c.watched)
		if events != nil || !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.watched, err)
		}
	}
}

// TestNews: a look at a unit that systemd keeps nothing of is no change of it.
func TestNews(t *testing.T) {
	var told []host.Event
	w := &unitWatch{
		units: []string{"a.service"}, renamed: make(chan struct{}, 1), m: &manager{},
		post:  func(e host.Event) { told = append(told, e) },
		paths: map[dbus.ObjectPath][]string{}, seen: map[dbus.ObjectPath]string{},
	}
	n := &w.m.news
	n.add(w)
	state := func(active string, tested uint64) props {
		return props{"Id": dbus.MakeVariant("a.service"), "ActiveState": dbus.MakeVariant(active), "ConditionTimestamp": dbus.MakeVariant(tested), "ConditionResult": dbus.MakeVariant(true)}
	}
	w.watch("a.service", state("inactive", 0))
	n.attend("a.service")
	says := func(unit string, p props) {
		n.hear(&dbus.Signal{Path: objectOf(unit), Name: properties + ".PropertiesChanged", Body: []any{unitIface, map[string]dbus.Variant(p), []string{}}})
	}
	says("a.service", state("inactive", 0))
	says("b.service", state("active", 1))
	says("a.service", state("active", 2))
	says("a.service", state("active", 2))
	says("a.service", state("inactive", 0))
	n.hear(&dbus.Signal{Name: managerIface + ".Reloading", Body: []any{true}})
	n.hear(&dbus.Signal{Name: managerIface + ".Reloading", Body: []any{false}})
	a := host.Event{Unit: "a.service"}
	if diff := cmp.Diff([]host.Event{a, a, a}, told); diff != "" {
		t.Error(diff)
	}
	forgotten := state("inactive", 0)
	n.recall(forgotten)
	if got := forgotten.at("ConditionTimestamp"); got.UnixMicro() != 2 || !get[bool](forgotten, "ConditionResult") {
		t.Errorf("recalled %v", forgotten)
	}
	n.remove(w)
	says("a.service", state("active", 3))
	if len(told) != 3 {
		t.Errorf("told after the end: %v", told)
	}
}
