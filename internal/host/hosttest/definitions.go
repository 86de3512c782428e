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

// What systemd does not notice: a definition that was written before the one in its
// place, and a drop-in that was written before the newest of them.
func unitOlderFiles(t *testing.T, h host.Host, _ string) {
	name := defineOne(t, h, sleeper)
	fragment, aside := path.Join(unitDir, name), path.Join(unitDir, name+".aside")
	first, last := path.Join(unitDir, name+".d/10-a.conf"), path.Join(unitDir, name+".d/20-b.conf")
	put(t, h, aside, "# older\n"+sleeper)
	t.Cleanup(func() { _ = h.Remove(aside) })
	tick()
	put(t, h, fragment, "# newer\n"+sleeper)
	add(t, h, first, "[Service]\nNice=1\n")
	must(t, h.DaemonReload(t.Context()))
	must(t, h.StartUnit(t.Context(), name))
	must(t, h.Rename(aside, fragment))
	outdated(t, h, "older definition", name, false)

	tick()
	put(t, h, aside, "[Service]\nNice=2\n")
	add(t, h, last, "[Service]\nNice=3\n")
	must(t, h.DaemonReload(t.Context()))
	must(t, h.Rename(aside, first))
	outdated(t, h, "drop-in newer than the one in its place, older than the other", name, false)
	tick()
	put(t, h, aside, "[Service]\nNice=4\n")
	tick()
	must(t, h.DaemonReload(t.Context()))
	outdated(t, h, "read again", name, false)
	must(t, h.Rename(aside, first))
	outdated(t, h, "drop-in newer than both, older than the reading", name, true)
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
