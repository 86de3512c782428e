package hosttest

import (
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

func unitChanges(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	must(t, h.StartUnit(t.Context(), name))
	needs := func(what string, want bool) {
		t.Helper()
		if got := unitStatus(t, h, name).NeedDaemonReload; got != want {
			t.Errorf("%s: NeedDaemonReload is %v", what, got)
		}
	}
	needs("fresh", false)
	tick()
	put(t, h, path.Join(unitDir, name), "# changed\n"+sleeper)
	needs("new definition", true)
	must(t, h.DaemonReload(t.Context()))
	needs("reloaded", false)

	dropIns := path.Join(unitDir, name+".d")
	must(t, h.Mkdir(dropIns, 0o755))
	put(t, h, dropIns+"/20-b.conf", "[Service]\nEnvironment=A=b\n")
	put(t, h, dropIns+"/10-a.conf", "[Service]\nEnvironment=A=a\n")
	t.Cleanup(func() {
		_ = h.Remove(dropIns + "/10-a.conf")
		_ = h.Remove(dropIns + "/20-b.conf")
		_ = h.Remove(dropIns)
	})
	must(t, h.DaemonReload(t.Context())) // a new directory need not be noticed
	needs("reloaded with drop-ins", false)
	if diff := cmp.Diff([]string{dropIns + "/10-a.conf", dropIns + "/20-b.conf"}, unitStatus(t, h, name).DropInPaths); diff != "" {
		t.Error(diff)
	}
	must(t, h.Remove(dropIns+"/20-b.conf"))
	needs("drop-in gone", true)
	must(t, h.DaemonReload(t.Context()))
	put(t, h, dropIns+"/20-b.conf", "[Service]\nEnvironment=A=b\n")
	needs("new drop-in", true)
	state(t, h, name, "loaded", "active", "running")
}

// tick lets the clock of the file system advance: it counts in jiffies, and two
// writes in one have the same time.
func tick() { time.Sleep(20 * time.Millisecond) }

func unitFileStates(t *testing.T, h host.Host, _ string) {
	const plain = "berth-conformance-static.service"
	const installed = "berth-conformance-installed.service"
	define(t, h, map[string]string{
		plain:     sleeper,
		installed: sleeper + "[Install]\nWantedBy=multi-user.target\n",
	})
	is := func(name, want string) {
		t.Helper()
		if got := unitStatus(t, h, name).UnitFileState; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	is(plain, "static")
	is(installed, "disabled")
	_, err := host.MkdirAll(h, unitDir+"/multi-user.target.wants")
	must(t, err)
	link := unitDir + "/multi-user.target.wants/" + installed
	must(t, h.Symlink("../"+installed, link))
	t.Cleanup(func() { _ = h.Remove(link) })
	must(t, h.DaemonReload(t.Context()))
	is(installed, "enabled")
	must(t, h.Remove(link))
	must(t, h.DaemonReload(t.Context()))
	is(installed, "disabled")
}
