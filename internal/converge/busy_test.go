package converge_test

import (
	"testing"

	"github.com/berth-dev/berth/internal/desired"
)

// busyUnits are those of a machine with units of all kinds.
var busyUnits = []string{"a.socket", "a.service", "w@x.service", "once.service", "stays.service", "job.timer", "job.service",
	"first.service", "second.service", "third.service"}

const (
	install = "[Install]\nWantedBy=multi-user.target\n"
	service = "[Service]\nExecStart=/usr/bin/w\n" + install
)

// busy is one contract's units of all kinds; version tells two apart. What ran
// once and is remembered by nobody is not among them: it may run once more where
// a run was cut off.
func busy(version string) []desired.Resource {
	at := func(name, content string) desired.Resource {
		return managed("/etc/systemd/system/"+name, "# "+version+"\n"+content)
	}
	after := func(other, name string) desired.Resource {
		return &desired.Unit{Base: desired.Base{After: []desired.ID{desired.UnitID(other)}}, Name: name, Enablement: desired.Enabled, Activation: desired.Started}
	}
	up := func(name string) desired.Resource {
		return &desired.Unit{Name: name, Enablement: desired.Enabled, Activation: desired.Started}
	}
	return []desired.Resource{
		at("a.socket", "[Socket]\nListenStream=/run/a.sock\n[Install]\nWantedBy=sockets.target\n"), at("a.service", service), up("a.socket"), after("a.socket", "a.service"),
		at("w@.service", service), up("w@x.service"),
		at("stays.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/w\n"+install), up("stays.service"),
		at("job.timer", "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n"), at("job.service", "[Service]\nType=oneshot\nExecStart=/usr/bin/w\n"), up("job.timer"),
		at("first.service", service), at("second.service", "[Unit]\nRequires=first.service\nAfter=first.service\n"+service), up("first.service"), after("first.service", "second.service"),
		at("service.d/proxy.conf", "[Service]\nEnvironment=PROXY=yes\n"),
		managed("/etc/conf", version+"\n"), &desired.Unit{Name: "containerd.service", Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{"/etc/conf"}},
		parameter("1"),
	}
}

// idleMachine is one on which another contract has a service that needs a busy
// one's, and shares a part of what that wants.
func idleMachine(t *testing.T) *machine {
	h := newMachine()
	h.Put("/usr/bin/w", "w", 0o755)
	runs(t, h, of(desired.OwnerOSC, sealed(t, parameter("1"),
		managed("/etc/systemd/system/third.service", "[Unit]\nPartOf=first.service\nAfter=first.service\n"+service),
		&desired.Unit{Name: "third.service", Enablement: desired.Enabled, Activation: desired.Started})))
	h.Flush()
	return h
}

func busyMachine(t *testing.T) *machine {
	h := idleMachine(t)
	runs(t, h, sealed(t, busy("1")...))
	h.Flush()
	return h
}

func busyScenarios() []scenario {
	at := func(version string) func(t *testing.T) *desired.State {
		return func(t *testing.T) *desired.State { return sealed(t, busy(version)...) }
	}
	nothing := func(t *testing.T) *desired.State { return sealed(t) }
	return []scenario{
		{"units of all kinds", idleMachine, at("1"), busyUnits, true},
		{"units of all kinds change", busyMachine, at("2"), busyUnits, true},
		{"units of all kinds go", busyMachine, nothing, busyUnits, true},
	}
}

// Withdrawn, nothing of them is left, and the other contract's is as it was.
func TestBusyUnitsGo(t *testing.T) {
	h, want := busyMachine(t), idleMachine(t)
	runs(t, h, sealed(t))
	converged(t, h, sealed(t))
	before, after := look(want, busyScenarios()[0], false), look(h, busyScenarios()[0], false)
	for _, name := range busyUnits {
		if name != "third.service" && after.Units[name][:len("inactive")] != "inactive" {
			t.Errorf("%s is %s", name, after.Units[name])
		}
	}
	if before.Units["third.service"] != after.Units["third.service"] || value(h) != "1" {
		t.Errorf("the other contract's: %s, was %s; ip_forward %s", after.Units["third.service"], before.Units["third.service"], value(h))
	}
	for p, content := range others(h) {
		if others(want)[p] != content {
			t.Errorf("%s is left", p)
		}
	}
}
