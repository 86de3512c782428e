package hosttest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

var namings = []testCase{
	{"template and instances", templates},
	{"template refuses jobs", templateRefused},
	{"alias", alias},
	{"alias of a unit that runs", aliasOfRunning},
	{"link to a definition elsewhere", linkedElsewhere},
	{"specifiers", specifiers},
	{"drop-ins of instance, template, prefix and type", dropInOrder},
	{"drop-ins by precedence of directories", dropInPrecedence},
	{"what a reload is needed for", needReload},
	{"units that nobody refers to are read anew", readAnew},
}

func templates(t *testing.T, h host.Host, _ string) {
	const template = "berth-conformance-w@.service"
	const a, b = "berth-conformance-w@a.service", "berth-conformance-w@b.service"
	define(t, h, map[string]string{template: sleeper})
	start(t, h, a)
	t.Cleanup(func() { _ = h.StopUnit(context.Background(), a) })
	if st := state(t, h, a, "loaded", "active", "running"); st.FragmentPath != definition(template) || st.ID != a {
		t.Errorf("status %+v", st)
	}
	tick()
	put(t, h, definition(template), "# changed\n"+sleeper)
	outdated(t, h, "template changed", a, true)
	outdated(t, h, "not loaded yet", b, false)
	reload(t, h)
	outdated(t, h, "reloaded", a, false)
	add(t, h, template+".d/10-a.conf", "[Service]\nEnvironment=A=1\n")
	reload(t, h)
	if diff := cmp.Diff([]string{definition(template + ".d/10-a.conf")}, unitStatus(t, h, a).DropInPaths); diff != "" {
		t.Error(diff)
	}
	takeAway(t, h, template)
	reload(t, h)
	state(t, h, a, "not-found", "active", "running")
	must(t, h.StopUnit(t.Context(), a))
	state(t, h, a, "not-found", "inactive", "dead")
}

func templateRefused(t *testing.T, h host.Host, _ string) {
	const template = "berth-conformance-w@.service"
	define(t, h, map[string]string{template: sleeper})
	for _, name := range []string{template, "berth-conformance"} {
		for what, do := range map[string]func(context.Context, string) error{
			"start": starter(h), "stop": h.StopUnit, "restart": h.RestartUnit, "reload": h.ReloadUnit, "reset": h.ResetFailed,
		} {
			if err := do(t.Context(), name); !errors.Is(err, host.ErrNotAUnit) {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}
}

func alias(t *testing.T, h host.Host, _ string) {
	const name, nick = "berth-conformance-real.service", "berth-conformance-nick.service"
	define(t, h, map[string]string{name: sleeper + "[Install]\nAlias=" + nick + "\n"})
	state(t, h, nick, "not-found", "inactive", "dead")
	addLink(t, h, nick, name)
	reload(t, h)
	start(t, h, nick)
	run := unitStatus(t, h, name).InvocationID
	for _, asked := range []string{name, nick} {
		st := state(t, h, asked, "loaded", "active", "running")
		lists(t, "names", st.Names, nick, name)
		if st.ID != name || st.FragmentPath != definition(name) || st.InvocationID != run || st.UnitFileState != "enabled" {
			t.Errorf("asked for %s: %+v", asked, st)
		}
	}
	got, err := h.ListUnits(t.Context(), "berth-conformance-*.service")
	if err != nil || len(got) != 1 || got[0].Name != name {
		t.Errorf("listed %v, %v", got, err)
	}
	add(t, h, nick+".d/10-a.conf", "[Service]\nEnvironment=A=1\n")
	reload(t, h)
	if diff := cmp.Diff([]string{definition(nick + ".d/10-a.conf")}, unitStatus(t, h, name).DropInPaths); diff != "" {
		t.Error(diff)
	}
	takeAway(t, h, nick)
	outdated(t, h, "alias gone", name, false)
	reload(t, h)
	state(t, h, nick, "not-found", "inactive", "dead")
	if st := state(t, h, name, "loaded", "active", "running"); st.InvocationID != run || len(st.Names) != 1 || st.UnitFileState != "disabled" {
		t.Errorf("without its alias %+v", st)
	}
}

// aliasOfRunning: a link to a unit that is loaded counts after a reload.
func aliasOfRunning(t *testing.T, h host.Host, _ string) {
	const name, nick = "berth-conformance-real.service", "berth-conformance-nick.service"
	define(t, h, map[string]string{name: sleeper})
	start(t, h, name)
	addLink(t, h, nick, name)
	outdated(t, h, "new alias", name, false)
	if st := unitStatus(t, h, nick); st.LoadState != "error" || st.ActiveState != "inactive" {
		t.Errorf("before the reload %+v", st)
	}
	reload(t, h)
	if st := state(t, h, nick, "loaded", "active", "running"); st.ID != name {
		t.Errorf("after the reload %+v", st)
	}
}

func linkedElsewhere(t *testing.T, h host.Host, dir string) {
	const name = "berth-conformance-linked.service"
	put(t, h, dir+"/"+name, sleeper)
	addLink(t, h, name, dir+"/"+name)
	reload(t, h)
	t.Cleanup(func() { _ = h.DaemonReload(context.Background()) })
	if st := state(t, h, name, "loaded", "inactive", "dead"); st.ID != name || st.FragmentPath != definition(name) || st.UnitFileState != "linked" {
		t.Errorf("status %+v", st)
	}
}

func specifiers(t *testing.T, h host.Host, _ string) {
	const target = "berth-conformance-x.target"
	define(t, h, map[string]string{
		target:                         "[Unit]\n",
		"berth-conformance-s@.service": "[Unit]\nRequires=berth-conformance-%i.target\n" + sleeper,
	})
	const name = "berth-conformance-s@x.service"
	start(t, h, name)
	t.Cleanup(func() { _ = h.StopUnit(context.Background(), name) })
	state(t, h, target, "loaded", "active", "active")
	lists(t, "needs", unitStatus(t, h, name).Needs, target)
	lists(t, "dependents", unitStatus(t, h, target).Dependents, name)
}

func dropInOrder(t *testing.T, h host.Host, _ string) {
	const template, name = "berth-conformance-w@.service", "berth-conformance-w@q-z.service"
	define(t, h, map[string]string{template: sleeper})
	const setting = "[Service]\nEnvironment=A=1\n"
	for _, d := range []string{
		name + ".d/05-own.conf", name + ".d/20-both.conf", template + ".d/20-both.conf", template + ".d/10-template.conf",
		"berth-conformance-.service.d/15-prefix.conf", "berth-.service.d/16-shorter.conf",
		"berth-conformance-w-.service.d/17-none.conf", "berth-conformance-w@q-.service.d/18-none.conf",
		"berth-conformance-@q-z.service.d/06-prefixed-instance.conf", "berth-@.service.d/07-prefixed-template.conf",
		"berth-conformance-@q-z.service.d/08-both.conf", "berth-conformance-@.service.d/08-both.conf", "berth-@q-z.service.d/08-both.conf", "berth-.service.d/09-both.conf", "berth-conformance-@q-z.service.d/09-both.conf",
		"service.d/12-berth-conformance.conf", "service.d/20-both.conf", name + ".d/30-not.txt",
	} {
		add(t, h, d, setting)
	}
	addLink(t, h, name+".d/40-masked.conf", "/dev/null")
	t.Cleanup(func() {
		for _, d := range []string{"service.d", "berth-.service.d", "berth-@.service.d", "berth-@q-z.service.d"} {
			_ = h.Remove(definition(d))
		}
	})
	reload(t, h)
	var want []string
	for _, d := range []string{
		name + ".d/05-own.conf", "berth-conformance-@q-z.service.d/06-prefixed-instance.conf", "berth-@.service.d/07-prefixed-template.conf",
		"berth-conformance-@q-z.service.d/08-both.conf", "berth-.service.d/09-both.conf", template + ".d/10-template.conf", "service.d/12-berth-conformance.conf",
		"berth-conformance-.service.d/15-prefix.conf", "berth-.service.d/16-shorter.conf", name + ".d/20-both.conf", name + ".d/40-masked.conf",
	} {
		want = append(want, definition(d))
	}
	if diff := cmp.Diff(want, unitStatus(t, h, name).DropInPaths); diff != "" {
		t.Error(diff)
	}
}

// dropInPrecedence: along the directories for the unit's own, then for its type.
func dropInPrecedence(t *testing.T, h host.Host, _ string) {
	const name, lib, run = "berth-conformance-p.service", "/usr/lib/systemd/system/", "/run/systemd/system/"
	add(t, h, lib+name, sleeper)
	for _, d := range []string{
		lib + name + ".d/10-x.conf", lib + name + ".d/11-x.conf", run + name + ".d/11-x.conf", run + name + ".d/12-x.conf",
		name + ".d/12-x.conf", "/usr/local/lib/systemd/system/" + name + ".d/13-x.conf", "service.d/10-x.conf",
	} {
		add(t, h, d, "[Service]\nEnvironment=A=1\n")
	}
	t.Cleanup(func() {
		_ = h.Remove(definition("service.d"))
		_ = h.DaemonReload(context.Background())
	})
	reload(t, h)
	st := unitStatus(t, h, name)
	want := []string{
		lib + name + ".d/10-x.conf", run + name + ".d/11-x.conf", definition(name + ".d/12-x.conf"),
		"/usr/local/lib/systemd/system/" + name + ".d/13-x.conf",
	}
	if diff := cmp.Diff(want, st.DropInPaths); diff != "" {
		t.Error(diff)
	}
	if st.FragmentPath != "/lib/systemd/system/"+name {
		t.Errorf("definition %s", st.FragmentPath)
	}
}

func needReload(t *testing.T, h host.Host, _ string) {
	const name, other, lib = "berth-conformance-n.service", "berth-conformance-o.service", "/usr/lib/systemd/system/"
	define(t, h, map[string]string{other: sleeper})
	add(t, h, lib+name, sleeper)
	reload(t, h)
	start(t, h, name)
	t.Cleanup(func() { _ = h.StopUnit(context.Background(), name) })
	add(t, h, name+".d/10-a.conf", "[Service]\nEnvironment=A=1\n")
	outdated(t, h, "new drop-in directory", name, false)
	unitStatus(t, h, other)
	outdated(t, h, "new drop-in directory, after systemd loaded another unit", name, true)
	reload(t, h)
	add(t, h, name+".d/20-b.conf", "[Service]\nEnvironment=A=1\n")
	outdated(t, h, "new drop-in", name, true)
	reload(t, h)
	takeAway(t, h, name+".d/20-b.conf")
	outdated(t, h, "drop-in gone", name, true)
	reload(t, h)
	addLink(t, h, name+".wants/"+other, "../"+other)
	outdated(t, h, "new link", name, false)
	put(t, h, definition(name), "# higher precedence\n"+sleeper)
	t.Cleanup(func() { _ = h.Remove(definition(name)) })
	outdated(t, h, "new definition of higher precedence", name, false)
	reload(t, h)
	if p := unitStatus(t, h, name).FragmentPath; p != definition(name) {
		t.Errorf("definition %s", p)
	}
	takeAway(t, h, name)
	outdated(t, h, "definition gone that another stands behind", name, true)
	reload(t, h)
	if p := unitStatus(t, h, name).FragmentPath; p != "/lib/systemd/system/"+name {
		t.Errorf("definition %s", p)
	}
	tick()
	put(t, h, lib+name, sleeper)
	outdated(t, h, "same content written again", name, true)
}

// readAnew: systemd keeps nothing of a unit that does nothing, unless another
// names it.
func readAnew(t *testing.T, h host.Host, _ string) {
	const name, keeper = "berth-conformance-idle.service", "berth-conformance-keeper.timer"
	define(t, h, map[string]string{name: sleeper, keeper: "[Timer]\nOnCalendar=yearly\nUnit=" + name + "\n"})
	outdated(t, h, "fresh", name, false)
	tick()
	put(t, h, definition(name), "# second\n"+sleeper)
	outdated(t, h, "nobody names it", name, false)
	start(t, h, keeper)
	lists(t, "triggered by", unitStatus(t, h, name).TriggeredBy, keeper)
	tick()
	put(t, h, definition(name), "# third\n"+sleeper)
	outdated(t, h, "a timer names it", name, true)
	reload(t, h)
	outdated(t, h, "reloaded", name, false)
}
