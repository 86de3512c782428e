package hosttest

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

// add writes one more file among the definitions, with its directory, until the
// test ends.
func add(t *testing.T, h host.Host, name, content string) {
	t.Helper()
	tick()
	makeRoom(t, h, name)
	put(t, h, definition(name), content)
}

// addLink is add of a link.
func addLink(t *testing.T, h host.Host, name, target string) {
	t.Helper()
	makeRoom(t, h, name)
	must(t, h.Symlink(target, definition(name)))
}

// definition is the path of a name below /etc/systemd/system; an absolute one
// stays.
func definition(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(unitDir, name)
}

func makeRoom(t *testing.T, h host.Host, name string) {
	t.Helper()
	p := definition(name)
	_, err := host.MkdirAll(h, path.Dir(p))
	must(t, err)
	t.Cleanup(func() {
		_ = h.Remove(p)
		if strings.HasPrefix(path.Base(path.Dir(p)), "berth-conformance") {
			_ = h.Remove(path.Dir(p))
		}
	})
}

// takeAway removes a definition or a link away.
func takeAway(t *testing.T, h host.Host, name string) {
	t.Helper()
	tick()
	must(t, h.Remove(definition(name)))
}

func reload(t *testing.T, h host.Host) {
	t.Helper()
	must(t, h.DaemonReload(t.Context()))
}

func start(t *testing.T, h host.Host, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, h.StartUnit(t.Context(), name))
	}
}

// outdated checks NeedDaemonReload.
func outdated(t *testing.T, h host.Host, what, name string, want bool) {
	t.Helper()
	if got := unitStatus(t, h, name).NeedDaemonReload; got != want {
		t.Errorf("%s: NeedDaemonReload of %s is %v", what, name, got)
	}
}

// until waits for a state of a unit, asking for as long as it takes.
func until(t *testing.T, h host.Host, name string, reached func(host.UnitStatus) bool) host.UnitStatus {
	t.Helper()
	for end := h.Now().Add(soon); ; must(t, h.Sleep(t.Context(), 5*time.Millisecond)) {
		st := unitStatus(t, h, name)
		if reached(st) {
			return st
		}
		if h.Now().After(end) {
			t.Fatalf("%s does not get there: %+v", name, st)
		}
	}
}

// lists checks a list of units by those of it that are the test's.
func lists(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	var own []string
	for _, name := range got {
		if strings.HasPrefix(name, "berth-conformance") {
			own = append(own, name)
		}
	}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
