package unitlife_test

import (
	"slices"

	"github.com/berth-dev/berth/internal/desired"
)

const a, b = "life-a.service", "life-b.service"

// lives are all there are.
func lives() []*life {
	return slices.Concat(services, definitions, olderFiles, tied, activated, others)
}

// services are lives of plain services, of those that run once, and of those that
// are skipped or fail.
var services = []*life{
	{
		name:  "service",
		first: []desired.Resource{file(admin+a, daemon("1")+install), unit(a, "enabled started")}, up: []string{a},
		second: []desired.Resource{file(admin+a, daemon("2")+install), unit(a, "enabled started")},
		runs:   [3]counts{{a: 1}, {a: 1}},
	},
	{
		name:   "oneshot",
		first:  []desired.Resource{file(admin+a, once("1")+install), unit(a, "enabled started")},
		second: []desired.Resource{file(admin+a, once("2")+install), unit(a, "enabled started")},
		runs:   [3]counts{{a: 1}, {a: 1}}, down: []string{a}, repeats: []string{a},
	},
	{
		name:   "oneshot that remains",
		first:  []desired.Resource{file(admin+a, once("1", "RemainAfterExit=yes\n")), unit(a, "started")},
		second: []desired.Resource{file(admin+a, once("2", "RemainAfterExit=yes\n")), unit(a, "started")},
		runs:   [3]counts{{a: 1}, {a: 1}}, up: []string{a},
	},
	{
		name:   "oneshot with a trigger",
		first:  []desired.Resource{file(data+"x", "1\n"), file(admin+a, once("")), unit(a, "started", data+"x")},
		second: []desired.Resource{file(data+"x", "2\n"), file(admin+a, once("")), unit(a, "started", data+"x")},
		runs:   [3]counts{{a: 1}, {a: 1}}, down: []string{a}, repeats: []string{a},
	},
	{
		name:   "condition that does not hold",
		first:  []desired.Resource{file(admin+a, daemon("1", "[Unit]\nConditionPathExists=/etc/life/flag\n")), unit(a, "started")},
		second: []desired.Resource{file(admin+a, daemon("2", "[Unit]\nConditionPathExists=/etc/life/flag\n")), unit(a, "started")},
		down:   []string{a}, remark: a + " is skipped",
	},
	{
		name:  "condition that holds in the end",
		first: []desired.Resource{file(admin+a, daemon("1", "[Unit]\nConditionPathExists=/etc/life/flag\n")), unit(a, "started")},
		second: []desired.Resource{file(data+"flag", ""), file(admin+a, daemon("2", "[Unit]\nConditionPathExists=/etc/life/flag\n")),
			unit(a, "started")},
		runs: [3]counts{{}, {a: 1}},
	},
	{
		name:   "assertion that does not hold",
		first:  []desired.Resource{file(admin+a, daemon("1", "[Unit]\nAssertPathExists=/etc/life/flag\n")), unit(a, "started")},
		second: []desired.Resource{file(admin+a, daemon("2", "[Unit]\nAssertPathExists=/etc/life/flag\n")), unit(a, "started")},
		down:   []string{a}, remark: a + " is skipped",
	},
	{
		// systemd's own restart, which would be one more run, does not come: a reload
		// counts the pause anew, by the new definition.
		name: "crash loop",
		first: []desired.Resource{file(data+"broken", "yes"), file(admin+"life-crash.service",
			"[Service]\nRestart=always\nRestartSec=600\nExecStart=/usr/bin/false\n"), unit("life-crash.service", "started")},
		second: []desired.Resource{file(data+"broken", ""), file(admin+"life-crash.service", daemon("")+"RestartSec=600\n"), unit("life-crash.service", "started")},
		fails:  "life-crash.service", up: []string{"life-crash.service"}, runs: [3]counts{{}, {"life-crash.service": 1}},
	},
	{
		// In the pause before that systemd may begin a run itself, which is one more.
		name:      "crash loop at its limit",
		meanwhile: func(w *world) { w.await("life-crash.service", "failed") },
		first: []desired.Resource{file(data+"broken", "yes"), file(admin+"life-crash.service",
			"[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=1\n[Service]\nRestart=always\nRestartSec=50ms\nExecStart=/usr/bin/false\n"), unit("life-crash.service", "started")},
		second: []desired.Resource{file(data+"broken", ""), file(admin+"life-crash.service", daemon("")), unit("life-crash.service", "started")},
		fails:  "life-crash.service", up: []string{"life-crash.service"}, runs: [3]counts{{}, {"life-crash.service": 1}},
	},
	{
		name:    "vendor's service, running",
		there:   map[string]string{vendor + a: daemon("vendor") + install},
		running: []string{a}, up: []string{a},
		first:  []desired.Resource{unit(a, "enabled started")},
		second: []desired.Resource{unit(a, "started")},
	},
	{
		name:    "vendor's service, stopped and disabled",
		there:   map[string]string{vendor + a: daemon("vendor") + install, admin + "multi-user.target.wants/" + a: "-> " + vendor + a},
		running: []string{a}, down: []string{a},
		first:  []desired.Resource{unit(a, "disabled stopped")},
		second: []desired.Resource{unit(a, "stopped")},
		runs:   [3]counts{{}, {}, {a: 1}},
	},
	{
		name:  "masked by the administrator",
		there: map[string]string{vendor + a: daemon("vendor"), admin + a: "-> /dev/null"},
		first: []desired.Resource{unit(a, "started")}, second: []desired.Resource{unit(a, "started")},
		up: []string{a}, runs: [3]counts{{a: 1}},
	},
	{
		name:    "override of a running service",
		there:   map[string]string{vendor + a: daemon("vendor")},
		running: []string{a}, up: []string{a},
		first:  []desired.Resource{file(admin+a, daemon("1")), unit(a, "started")},
		second: []desired.Resource{file(admin+a, daemon("2")), unit(a, "started")},
		runs:   [3]counts{{a: 1}, {a: 1}, {a: 1}},
	},
	{
		name:    "administrator's definition replaced",
		there:   map[string]string{admin + a: daemon("administrator")},
		running: []string{a}, up: []string{a},
		first:  []desired.Resource{file(admin+a, daemon("1")), unit(a, "started")},
		second: []desired.Resource{file(admin+a, daemon("2")), unit(a, "started")},
		runs:   [3]counts{{a: 1}, {a: 1}, {a: 1}},
	},
}

// starts is somebody else's start of a unit.
func starts(names ...string) func(*world) {
	return func(w *world) {
		for _, name := range names {
			must(w.StartUnit(tctx, name))
		}
	}
}

// definitions are lives of what units consist of: templates, drop-ins, names, and
// definitions that nothing of the state runs.
var definitions = []*life{
	{
		name:   "instance of a template",
		first:  []desired.Resource{file(admin+"life-t@.service", daemon("1")+install), unit("life-t@x.service", "enabled started")},
		second: []desired.Resource{file(admin+"life-t@.service", daemon("2")+install), unit("life-t@x.service", "enabled started")},
		up:     []string{"life-t@x.service"}, runs: [3]counts{{"life-t@x.service": 1}, {"life-t@x.service": 1}},
	},
	{
		name: "instance without its template",
		first: []desired.Resource{file(admin+"life-t@.service", daemon("1")), file(admin+"life-t@x.service", daemon("mine")),
			unit("life-t@x.service", "started")},
		second: []desired.Resource{file(admin+"life-t@.service", daemon("2")), file(admin+"life-t@x.service", daemon("mine")),
			unit("life-t@x.service", "started")},
		up: []string{"life-t@x.service"}, runs: [3]counts{{"life-t@x.service": 1}},
	},
	{
		name: "template alone",
		first: []desired.Resource{file(admin+"life-t@.service", daemon("1")+"[Install]\nWantedBy=multi-user.target\nDefaultInstance=main\n"),
			unit("life-t@.service", "enabled")},
		second: []desired.Resource{file(admin+"life-t@.service", daemon("2")+"[Install]\nWantedBy=multi-user.target\nDefaultInstance=main\n"),
			unit("life-t@.service", "enabled")},
		down: []string{"life-t@main.service"},
	},
	{
		name:      "template of an instance that somebody runs",
		first:     []desired.Resource{file(admin+"life-t@.service", daemon("1"))},
		meanwhile: starts("life-t@x.service"),
		second:    []desired.Resource{file(admin+"life-t@.service", daemon("2"))},
		lasts:     []string{"life-t@x.service"},
	},
	{
		name: "drop-in of the template",
		first: []desired.Resource{file(admin+"life-t@.service", daemon("1")), file(admin+"life-t@.service.d/x.conf", "[Service]\nNice=1\n"),
			unit("life-t@x.service", "started")},
		second: []desired.Resource{file(admin+"life-t@.service", daemon("1")), file(admin+"life-t@.service.d/x.conf", "[Service]\nNice=2\n"),
			unit("life-t@x.service", "started")},
		up: []string{"life-t@x.service"}, runs: [3]counts{{"life-t@x.service": 1}, {"life-t@x.service": 1}},
	},
	{
		name:   "vendor's drop-in for a unit of ours",
		there:  map[string]string{vendor + a + ".d/10-vendor.conf": "[Service]\nNice=3\n"},
		first:  []desired.Resource{file(admin+a, daemon("1")), unit(a, "started")},
		second: []desired.Resource{file(admin+a, daemon("2")), unit(a, "started")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name:   "vendor's drop-in hidden by ours",
		there:  map[string]string{vendor + a: daemon("vendor"), vendor + a + ".d/x.conf": "[Service]\nNice=3\n"},
		first:  []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=4\n"), unit(a, "started")},
		second: []desired.Resource{unit(a, "started")}, running: []string{a},
		up: []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name:    "drop-in for the vendor's running service",
		there:   map[string]string{vendor + a: daemon("vendor")},
		running: []string{a}, up: []string{a},
		first:  []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=1\n"), unit(a, "started")},
		second: []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=2\n"), unit(a, "started")},
		runs:   [3]counts{{a: 1}, {a: 1}, {a: 1}},
	},
	{
		name:    "drop-in for a running service that is nobody's",
		there:   map[string]string{vendor + a: daemon("vendor")},
		running: []string{a}, up: []string{a},
		first:  []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=1\n")},
		second: []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=2\n")},
	},
	{
		name:    "drop-ins of a prefix",
		there:   map[string]string{vendor + a: daemon("vendor"), vendor + b: daemon("vendor")},
		running: []string{a, b}, up: []string{a, b},
		first:  []desired.Resource{file(admin+"life-.service.d/x.conf", "[Service]\nNice=1\n"), unit(a, "started")},
		second: []desired.Resource{file(admin+"life-.service.d/x.conf", "[Service]\nNice=2\n"), unit(a, "started")},
		runs:   [3]counts{{a: 1}, {a: 1}, {a: 1}},
	},
	{
		name:    "drop-ins of a prefix of instances",
		there:   map[string]string{vendor + "life-w@.service": daemon("vendor")},
		running: []string{"life-w@x.service"}, up: []string{"life-w@x.service"},
		first:  []desired.Resource{file(admin+"life-@.service.d/x.conf", "[Service]\nNice=1\n"), unit("life-w@x.service", "started")},
		second: []desired.Resource{file(admin+"life-@.service.d/x.conf", "[Service]\nNice=2\n"), unit("life-w@x.service", "started")},
		runs:   [3]counts{{"life-w@x.service": 1}, {"life-w@x.service": 1}, {"life-w@x.service": 1}},
	},
	{
		name:    "drop-ins of a prefix of one instance",
		there:   map[string]string{vendor + "life-w@.service": daemon("vendor")},
		running: []string{"life-w@x.service"}, up: []string{"life-w@x.service"},
		first:  []desired.Resource{file(admin+"life-@x.service.d/x.conf", "[Service]\nNice=1\n"), unit("life-w@x.service", "started")},
		second: []desired.Resource{file(admin+"life-@x.service.d/x.conf", "[Service]\nNice=2\n"), unit("life-w@x.service", "started")},
		runs:   [3]counts{{"life-w@x.service": 1}, {"life-w@x.service": 1}, {"life-w@x.service": 1}},
	},
	{
		name:    "drop-ins of a type",
		there:   map[string]string{vendor + a: daemon("vendor"), vendor + b: daemon("vendor")},
		running: []string{a, b}, up: []string{a, b},
		first:  []desired.Resource{file(admin+"service.d/life.conf", "[Service]\nEnvironment=PROXY=1\n"), unit(a, "started")},
		second: []desired.Resource{file(admin+"service.d/life.conf", "[Service]\nEnvironment=PROXY=2\n"), unit(a, "started")},
		runs:   [3]counts{{a: 1}, {a: 1}, {a: 1}},
	},
	{
		name:    "name that leads to another definition",
		there:   map[string]string{vendor + a: daemon("vendor"), admin + "life-name.service": "-> " + vendor + a},
		running: []string{a}, up: []string{a},
		first:  []desired.Resource{unit("life-name.service", "started", data+"x"), file(data+"x", "1\n")},
		second: []desired.Resource{unit("life-name.service", "started", data+"x"), file(data+"x", "2\n")},
		runs:   [3]counts{{a: 1}, {a: 1}, {a: 1}},
	},
	{
		name:    "drop-in of a name that leads to another definition",
		there:   map[string]string{vendor + a: daemon("vendor"), admin + "life-name.service": "-> " + vendor + a},
		running: []string{a}, up: []string{a}, read: []string{a},
		first:  []desired.Resource{unit("life-name.service", "started")},
		second: []desired.Resource{unit("life-name.service", "started"), file(admin+"life-name.service.d/10.conf", "[Service]\n"+reloading)},
		runs:   [3]counts{{}, {a: 1}, {a: 1}},
	},
	{
		name:    "drop-in of such a name, of a unit that nobody asks for",
		there:   map[string]string{vendor + a: daemon("vendor"), admin + "life-name.service": "-> " + vendor + a},
		running: []string{a}, up: []string{a}, read: []string{a},
		second: []desired.Resource{file(admin+"life-name.service.d/10.conf", "[Service]\n"+reloading)},
	},
	{
		name:   "alias",
		first:  []desired.Resource{file(admin+a, daemon("1")+"[Install]\nAlias=life-alias.service\n"), unit(a, "enabled started")},
		second: []desired.Resource{file(admin+a, daemon("2")+"[Install]\nAlias=life-alias.service\n"), unit(a, "enabled started")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name: "another that is enabled along",
		first: []desired.Resource{file(admin+a, daemon("1")+install+"Also="+b+" life-nowhere.socket\n"),
			file(admin+b, daemon("1")+"[Install]\nAlias=life-b2.service\nWantedBy=multi-user.target\nAlso="+a+"\n"), unit(a, "enabled started")},
		second: []desired.Resource{file(admin+a, daemon("2")+install+"Also="+b+"\n"), file(admin+b, daemon("1")+install), unit(a, "enabled started")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name: "specifiers of what enables",
		first: []desired.Resource{file(admin+"life-t@.service", daemon("1")+"[Install]\nWantedBy=life-%i.target life-%j.target %p.target life-%I.target\n"), file(admin+"life-x.target", ""),
			unit("life-t@x.service", "enabled")},
		second: []desired.Resource{file(admin+"life-t@.service", daemon("2")+"[Install]\nWantedBy=life-%i.target\n"), file(admin+"life-x.target", ""),
			unit("life-t@x.service", "enabled started")},
		runs: [3]counts{{}, {"life-t@x.service": 1}},
	},
	{
		name:   "one directory, two spellings",
		first:  []desired.Resource{file("/lib/systemd/system/"+a, daemon("1")), unit(a, "started")},
		second: []desired.Resource{file("/lib/systemd/system/"+a, daemon("2")), unit(a, "started")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	unasked("file alone"),
	unasked("enabled alone", unit(a, "enabled")),
	{
		name:      "stopped",
		first:     []desired.Resource{file(admin+a, daemon("1")), unit(a, "stopped")},
		meanwhile: starts(a),
		second:    []desired.Resource{file(admin+a, daemon("2")), unit(a, "stopped")},
		down:      []string{a},
	},
}

// unasked is a definition that changes while somebody else runs the unit.
func unasked(name string, us ...desired.Resource) *life {
	return &life{
		name:      name,
		first:     append([]desired.Resource{file(admin+a, daemon("1")+install)}, us...),
		meanwhile: starts(a),
		second:    append([]desired.Resource{file(admin+a, daemon("2")+install)}, us...),
		lasts:     []string{a},
	}
}

// tied are lives of units that take each other along.
var tied = []*life{
	requiring("Requires", true),
	requiring("BindsTo", true),
	requiring("PartOf", true),
	requiring("Requires", false),
	requiring("PartOf", false),
	{
		name: "what starts first needs what comes after it",
		first: []desired.Resource{file(admin+a, daemon("1", "[Unit]\nRequires="+b+"\nAfter="+b+"\n")), file(admin+b, daemon("1")),
			unit(a, "started"), unit(b, "started")},
		second: []desired.Resource{file(admin+a, daemon("2", "[Unit]\nRequires="+b+"\nAfter="+b+"\n")), file(admin+b, daemon("2")),
			unit(a, "started"), unit(b, "started")},
		up: []string{a, b}, runs: [3]counts{{a: 1, b: 1}, {a: 1, b: 1}},
	},
	{
		name:    "what others' services require",
		there:   map[string]string{vendor + a: daemon("vendor"), vendor + b: daemon("vendor", "[Unit]\nRequires="+a+"\nAfter="+a+"\n")},
		running: []string{a, b}, up: []string{a, b},
		first:  []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=1\n"), unit(a, "started")},
		second: []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=2\n"), unit(a, "started")},
		runs:   [3]counts{{a: 1, b: 1}, {a: 1, b: 1}, {a: 1, b: 1}},
	},
	{
		name:  "two contracts, one pair",
		there: map[string]string{vendor + b: daemon("vendor", "[Unit]\nRequires="+a+"\nAfter="+a+"\n"), vendor + a: daemon("vendor")},
		other: []desired.Resource{unit(b, "started")}, up: []string{a, b},
		first:  []desired.Resource{file(admin+a, daemon("1")), unit(a, "started")},
		second: []desired.Resource{file(admin+a, daemon("2")), unit(a, "started")},
		runs:   [3]counts{{a: 1, b: 1}, {a: 1, b: 1}, {a: 1, b: 1}}, lasts: []string{a},
	},
	{
		name:  "two contracts, one service",
		there: map[string]string{vendor + a: daemon("vendor")},
		other: []desired.Resource{unit(a, "started", data+"x"), file(data+"x", "")}, up: []string{a},
		first:  []desired.Resource{unit(a, "started", data+"x")},
		second: []desired.Resource{unit(a, "started"), file(admin+a+".d/x.conf", "[Service]\nNice=2\n")},
		runs:   [3]counts{{}, {a: 1}, {a: 1}},
	},
	{
		name:  "contract takes its override from a service of another",
		there: map[string]string{vendor + a: daemon("vendor")},
		other: []desired.Resource{unit(a, "started")}, up: []string{a},
		first:  []desired.Resource{file(admin+a, daemon("1"))},
		second: []desired.Resource{file(admin+a, daemon("2"))},
		runs:   [3]counts{{a: 1}, {a: 1}, {a: 1}},
	},
}

// requiring is a pair of which one takes the other along, with both changed or
// the first alone.
func requiring(how string, both bool) *life {
	tie := "[Unit]\n" + how + "=" + a + "\nAfter=" + a + "\n"
	name, second := "pair by "+how+", one changes", daemon("1", tie)
	if both {
		name, second = "pair by "+how+", both change", daemon("2", tie)
	}
	return &life{
		name:   name,
		first:  []desired.Resource{file(admin+a, daemon("1")), file(admin+b, daemon("1", tie)), unit(a, "started"), unit(b, "started")},
		second: []desired.Resource{file(admin+a, daemon("2")), file(admin+b, second), unit(a, "started"), unit(b, "started")},
		up:     []string{a, b}, runs: [3]counts{{a: 1, b: 1}, {a: 1, b: 1}},
	}
}

const (
	socket = "life-a.socket"
	timer  = "life-a.timer"
	mount  = "run-lifemnt.mount"
)

func listening(version string) string {
	return "# " + version + "\n[Socket]\nListenStream=/run/life-a.sock\n[Install]\nWantedBy=sockets.target\n"
}

// activated are lives of units that are no services.
var activated = []*life{
	{
		name:   "socket",
		first:  []desired.Resource{file(admin+socket, listening("1")), file(admin+a, daemon("1")), unit(socket, "enabled started")},
		second: []desired.Resource{file(admin+socket, listening("2")), file(admin+a, daemon("1")), unit(socket, "enabled started")},
		up:     []string{socket}, down: []string{a}, runs: [3]counts{{socket: 1}, {socket: 1}},
	},
	{
		name:      "socket whose service runs",
		first:     []desired.Resource{file(admin+socket, listening("1")), file(admin+a, daemon("1")), unit(socket, "enabled started")},
		meanwhile: starts(a),
		second:    []desired.Resource{file(admin+socket, listening("2")), file(admin+a, daemon("1")), unit(socket, "enabled started")},
		up:        []string{socket}, runs: [3]counts{{socket: 1}, {socket: 1, a: 1}}, lasts: []string{a},
	},
	{
		name:    "new socket of somebody else's service, which runs",
		there:   map[string]string{vendor + a: daemon("vendor")},
		running: []string{a},
		first:   []desired.Resource{file(admin+socket, listening("1")), unit(socket, "started")},
		second:  []desired.Resource{file(admin+socket, listening("2")), unit(socket, "started")},
		up:      []string{socket, a}, runs: [3]counts{{socket: 1, a: 1}, {socket: 1, a: 1}},
	},
	{
		name:    "new socket of somebody else's service, which gets a drop-in",
		there:   map[string]string{vendor + a: daemon("vendor")},
		running: []string{a},
		first:   []desired.Resource{file(admin+socket, listening("1")), file(admin+a+".d/x.conf", "[Service]\nNice=1\n"), unit(socket, "started")},
		second:  []desired.Resource{file(admin+socket, listening("2")), file(admin+a+".d/x.conf", "[Service]\nNice=1\n"), unit(socket, "started")},
		up:      []string{socket, a}, runs: [3]counts{{socket: 1, a: 1}, {socket: 1, a: 1}},
	},
	{
		name:    "drop-in has somebody else's service need ours, which goes with it",
		there:   map[string]string{vendor + b: daemon("vendor")},
		running: []string{b},
		first:   []desired.Resource{file(admin+a, daemon("1")), unit(a, "started"), file(admin+b+".d/x.conf", "[Unit]\nRequires="+a+"\nAfter="+a+"\n")},
		second:  []desired.Resource{file(admin+a, daemon("2")), unit(a, "started"), file(admin+b+".d/x.conf", "[Unit]\nRequires="+a+"\nAfter="+a+"\n")},
		up:      []string{a, b}, runs: [3]counts{{a: 1}, {a: 1, b: 1}, {b: 1}},
	},
	{
		name:      "goes, and somebody else's service needs it",
		there:     map[string]string{vendor + b: "[Unit]\nRequires=" + a + "\nAfter=" + a + "\n" + daemon("vendor")},
		first:     []desired.Resource{file(admin+a, daemon("1")), unit(a, "started")},
		second:    []desired.Resource{file(data+"x", "1\n")},
		meanwhile: starts(b),
		runs:      [3]counts{{a: 1}, {}, {}}, lasts: []string{b},
	},
	{
		name:    "stopped, and somebody else's service needs it",
		there:   map[string]string{vendor + a: daemon("vendor"), vendor + b: "[Unit]\nRequires=" + a + "\nAfter=" + a + "\n" + daemon("vendor")},
		running: []string{a, b},
		first:   []desired.Resource{unit(a, "stopped")},
		second:  []desired.Resource{unit(a, "stopped"), file(data+"x", "1\n")},
		down:    []string{a, b}, runs: [3]counts{{}, {}, {a: 1}}, lasts: []string{b},
	},
	{
		name:   "socket and service, both wanted",
		first:  []desired.Resource{file(admin+socket, listening("1")), file(admin+a, daemon("1")), unit(socket, "enabled started"), unit(a, "started")},
		second: []desired.Resource{file(admin+socket, listening("2")), file(admin+a, daemon("2")), unit(socket, "enabled started"), unit(a, "started")},
		up:     []string{socket, a}, runs: [3]counts{{socket: 1, a: 1}, {socket: 1, a: 1}},
	},
	{
		name:   "socket and service, the service changes",
		first:  []desired.Resource{file(admin+socket, listening("1")), file(admin+a, daemon("1")), unit(socket, "enabled started"), unit(a, "started")},
		second: []desired.Resource{file(admin+socket, listening("1")), file(admin+a, daemon("2")), unit(socket, "enabled started"), unit(a, "started")},
		up:     []string{socket, a}, runs: [3]counts{{socket: 1, a: 1}, {a: 1}},
	},
	{
		name:   "socket and service, the socket changes",
		first:  []desired.Resource{file(admin+socket, listening("1")), file(admin+a, daemon("1")), unit(socket, "enabled started"), unit(a, "started")},
		second: []desired.Resource{file(admin+socket, listening("2")), file(admin+a, daemon("1")), unit(socket, "enabled started"), unit(a, "started")},
		up:     []string{socket, a}, runs: [3]counts{{socket: 1, a: 1}, {socket: 1, a: 1}},
	},
	{
		name:    "socket and service that end",
		there:   map[string]string{vendor + socket: listening("vendor"), vendor + a: daemon("vendor")},
		running: []string{socket, a}, down: []string{socket, a},
		first:  []desired.Resource{unit(socket, "stopped"), after(unit(a, "stopped"), socket)},
		second: []desired.Resource{unit(a, "stopped"), unit(socket, "stopped")},
		runs:   [3]counts{{}, {}, {socket: 1, a: 1}},
	},
	{
		name:      "socket that somebody stopped, its service runs",
		first:     []desired.Resource{file(admin+socket, listening("1")), file(admin+a, daemon("1")), unit(socket, "started"), unit(a, "started")},
		meanwhile: func(w *world) { must(w.StopUnit(tctx, socket)) },
		second:    []desired.Resource{file(admin+socket, listening("1")), file(admin+a, daemon("1")), unit(socket, "started"), unit(a, "started")},
		up:        []string{socket, a}, runs: [3]counts{{socket: 1, a: 1}, {socket: 1, a: 1}},
	},
	{
		name: "socket that names its service",
		first: []desired.Resource{file(admin+socket, listening("1")+"[Socket]\nService="+b+"\n"), file(admin+b, daemon("1")),
			unit(socket, "started"), &desired.Unit{Base: desired.Base{After: []desired.ID{desired.UnitID(socket)}}, Name: b, Activation: desired.Started}},
		second: []desired.Resource{file(admin+socket, listening("2")+"[Socket]\nService="+b+"\n"), file(admin+b, daemon("2")),
			unit(socket, "started"), unit(b, "started")},
		up: []string{socket, b}, runs: [3]counts{{socket: 1, b: 1}, {socket: 1, b: 1}},
	},
	{
		name:   "timer",
		first:  []desired.Resource{file(admin+timer, "# 1\n[Timer]\nOnCalendar=yearly\n"), file(admin+a, once("1")), unit(timer, "started")},
		second: []desired.Resource{file(admin+timer, "# 2\n[Timer]\nOnCalendar=yearly\n"), file(admin+a, once("1")), unit(timer, "started")},
		up:     []string{timer}, down: []string{a}, runs: [3]counts{{timer: 1}, {timer: 1}},
	},
	{
		name:      "timer's service",
		first:     []desired.Resource{file(admin+timer, "[Timer]\nOnCalendar=yearly\n"), file(admin+a, once("1")), unit(timer, "started")},
		meanwhile: starts(a),
		second:    []desired.Resource{file(admin+timer, "[Timer]\nOnCalendar=yearly\n"), file(admin+a, once("2")), unit(timer, "started")},
		up:        []string{timer}, down: []string{a}, runs: [3]counts{{timer: 1}},
	},
	{
		name:   "path",
		first:  []desired.Resource{file(admin+"life-a.path", "# 1\n[Path]\nPathExists=/etc/life/flag\n"), file(admin+a, once("1")), unit("life-a.path", "started")},
		second: []desired.Resource{file(admin+"life-a.path", "# 2\n[Path]\nPathExists=/etc/life/flag\n"), file(admin+a, once("1")), unit("life-a.path", "started")},
		up:     []string{"life-a.path"}, down: []string{a}, runs: [3]counts{{"life-a.path": 1}, {"life-a.path": 1}},
	},
	{
		name:   "mount",
		first:  []desired.Resource{file(admin+mount, mounting("1m")), unit(mount, "started")},
		second: []desired.Resource{file(admin+mount, mounting("2m")), unit(mount, "started")},
		up:     []string{mount}, runs: [3]counts{{mount: 1}, {mount: 1}},
	},
	{
		name: "mount that a service needs",
		first: []desired.Resource{file(admin+mount, mounting("1m")), file(admin+a, daemon("1", "[Unit]\nRequiresMountsFor=/run/lifemnt\nRequires="+mount+"\nAfter="+mount+"\n")),
			unit(mount, "started"), unit(a, "started")},
		second: []desired.Resource{file(admin+mount, mounting("2m")), file(admin+a, daemon("1", "[Unit]\nRequiresMountsFor=/run/lifemnt\nRequires="+mount+"\nAfter="+mount+"\n")),
			unit(mount, "started"), unit(a, "started")},
		up: []string{mount, a}, runs: [3]counts{{mount: 1, a: 1}, {mount: 1, a: 1}},
	},
	{
		name:   "target",
		first:  []desired.Resource{file(admin+"life-x.target", "# 1\n"), unit("life-x.target", "started")},
		second: []desired.Resource{file(admin+"life-x.target", "# 2\n"), unit("life-x.target", "started")},
		up:     []string{"life-x.target"}, runs: [3]counts{{"life-x.target": 1}, {"life-x.target": 1}},
	},
	{
		name:   "slice with a service in it",
		first:  []desired.Resource{file(admin+"life.slice", "# 1\n"), file(admin+a, daemon("")+"Slice=life.slice\n"), unit("life.slice", "started"), unit(a, "started")},
		second: []desired.Resource{file(admin+"life.slice", "# 2\n"), file(admin+a, daemon("")+"Slice=life.slice\n"), unit("life.slice", "started"), unit(a, "started")},
		up:     []string{"life.slice", a}, runs: [3]counts{{"life.slice": 1, a: 1}, {"life.slice": 1, a: 1}},
	},
}

func mounting(size string) string {
	return "[Mount]\nWhat=tmpfs\nWhere=/run/lifemnt\nType=tmpfs\nOptions=size=" + size + "\n"
}

const automount = "run-lifeauto.automount"

// ofKernels are lives that a container has no kernel for.
func ofKernels() []*life { return slices.Concat(autofs, setBackClocks) }

var autofs = []*life{
	{
		name:   "automount",
		first:  []desired.Resource{file(admin+automount, "[Automount]\nWhere=/run/lifeauto\n"), file(admin+"run-lifeauto.mount", behind("1m")), unit(automount, "started")},
		second: []desired.Resource{file(admin+automount, "# 2\n[Automount]\nWhere=/run/lifeauto\n"), file(admin+"run-lifeauto.mount", behind("1m")), unit(automount, "started")},
		up:     []string{automount}, runs: [3]counts{{automount: 1}, {automount: 1}},
	},
	{
		name:      "automount whose mount is there",
		first:     []desired.Resource{file(admin+automount, "[Automount]\nWhere=/run/lifeauto\n"), file(admin+"run-lifeauto.mount", behind("1m")), unit(automount, "started")},
		meanwhile: func(w *world) { must(w.StartUnit(tctx, "run-lifeauto.mount")) },
		second:    []desired.Resource{file(admin+automount, "[Automount]\nWhere=/run/lifeauto\n"), file(admin+"run-lifeauto.mount", behind("2m")), unit(automount, "started")},
		up:        []string{automount}, runs: [3]counts{{automount: 1}},
	},
}

func behind(size string) string {
	return "[Mount]\nWhat=tmpfs\nWhere=/run/lifeauto\nType=tmpfs\nOptions=size=" + size + "\n"
}

func rereading(version string) string { return daemon(version) + reloading }

// others are lives of the files that units read.
var others = []*life{
	{
		name:   "trigger changes",
		first:  []desired.Resource{file(data+"x", "1\n"), file(admin+a, daemon("")), unit(a, "started", data+"x")},
		second: []desired.Resource{file(data+"x", "2\n"), file(admin+a, daemon("")), unit(a, "started", data+"x")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name:   "trigger more, of which nothing changed",
		there:  map[string]string{data + "x": "image's\n"},
		first:  []desired.Resource{file(admin+a, daemon("")), unit(a, "started")},
		second: []desired.Resource{file(admin+a, daemon("")), unit(a, "started", data+"x")},
		up:     []string{a}, runs: [3]counts{{a: 1}},
	},
	{
		name:   "trigger more, which comes with it",
		first:  []desired.Resource{file(admin+a, daemon("")), unit(a, "started")},
		second: []desired.Resource{file(data+"x", "new\n"), file(admin+a, daemon("")), unit(a, "started", data+"x")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name:   "trigger less",
		first:  []desired.Resource{file(data+"x", "1\n"), file(admin+a, daemon("")), unit(a, "started", data+"x")},
		second: []desired.Resource{file(data+"x", "2\n"), file(admin+a, daemon("")), unit(a, "started")},
		up:     []string{a}, runs: [3]counts{{a: 1}},
	},
	{
		name:   "trigger that goes",
		first:  []desired.Resource{file(data+"x", "1\n"), file(admin+a, daemon("")), unit(a, "started", data+"x")},
		second: []desired.Resource{file(admin+a, daemon("")), unit(a, "started", data+"x")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name:   "trigger that asks for a reload",
		first:  []desired.Resource{file(data+"x", "1\n"), file(admin+a, rereading("")), reloads(a, data+"x")},
		second: []desired.Resource{file(data+"x", "2\n"), file(admin+a, rereading("")), reloads(a, data+"x")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {"reload " + a: 1}}, repeats: []string{"reload " + a},
	},
	{
		name:   "reload of a unit that can't",
		first:  []desired.Resource{file(data+"x", "1\n"), file(admin+a, daemon("")), reloads(a, data+"x")},
		second: []desired.Resource{file(data+"x", "2\n"), file(admin+a, daemon("")), reloads(a, data+"x")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name:   "restart and reload owed at once",
		first:  []desired.Resource{file(data+"x", "1\n"), file(data+"y", "1\n"), file(admin+a, rereading("")), reloads(a, data+"x", data+"y")},
		second: []desired.Resource{file(data+"x", "2\n"), file(data+"y", "2\n"), file(admin+a, rereading("")), reloads(a, data+"x", data+"y")},
		up:     []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
	{
		name:      "somebody edits a trigger and restarts",
		there:     map[string]string{data + "x": "image's\n"},
		first:     []desired.Resource{file(admin+a, daemon("")), unit(a, "started", data+"x")},
		meanwhile: func(w *world) { w.edit(data+"x", "edited\n"); must(w.RestartUnit(tctx, a)) },
		second:    []desired.Resource{file(admin+a, daemon("")), unit(a, "started", data+"x")},
		up:        []string{a}, runs: [3]counts{{a: 1}}, edits: []string{data + "x"},
	},
	{
		name:      "somebody edits a trigger",
		there:     map[string]string{data + "x": "image's\n"},
		first:     []desired.Resource{file(admin+a, daemon("")), unit(a, "started", data+"x")},
		meanwhile: func(w *world) { w.edit(data+"x", "edited\n") },
		second:    []desired.Resource{file(admin+a, daemon("")), unit(a, "started", data+"x")},
		up:        []string{a}, runs: [3]counts{{a: 1}, {a: 1}}, edits: []string{data + "x"},
	},
	{
		name:      "somebody stops it",
		first:     []desired.Resource{file(admin+a, daemon("")), unit(a, "started")},
		meanwhile: func(w *world) { must(w.StopUnit(tctx, a)) },
		second:    []desired.Resource{file(admin+a, daemon("")), unit(a, "started")},
		up:        []string{a}, runs: [3]counts{{a: 1}, {a: 1}},
	},
}

// reloads is a started unit that rereads one file, and restarts for others.
func reloads(name, rereads string, triggers ...string) *desired.Unit {
	u := unit(name, "started", triggers...)
	u.ReloadTriggers = []string{rereads}
	return u
}
