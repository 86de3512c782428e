package converge_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A unit that is to be disabled is not started at boot by any target, and those
// that another made it start for have it back in the end.
func TestDisabledForEveryTarget(t *testing.T) {
	h := newMachine()
	links := []string{"/etc/systemd/system/kubernetes.target.wants/containerd.service", wants}
	for _, l := range links {
		h.PutLink("/usr/lib/systemd/system/containerd.service", l, 0)
	}
	must(h.DaemonReload(tctx))
	before := others(h)
	s := sealed(t, &desired.Unit{Name: "containerd.service", Enablement: desired.Disabled})
	runs(t, h, s)
	converged(t, h, s)
	must(h.DaemonReload(tctx))
	if st, err := h.Unit(tctx, "containerd.service"); err != nil || st.UnitFileState != "disabled" {
		t.Errorf("systemd says %s, %v", st.UnitFileState, err)
	}
	runs(t, h, sealed(t))
	for _, l := range links {
		if others(h)[l] != before[l] {
			t.Errorf("%s: %q", l, others(h)[l])
		}
	}
}

// A link that makes a unit start at boot asks systemd for nothing now, also of one
// that runs: to read all definitions again holds up who starts meanwhile.
func TestEnableOfOneThatRunsReloadsNothing(t *testing.T) {
	h := newMachine()
	s := sealed(t, &desired.Unit{Name: "containerd.service", Enablement: desired.Enabled, Activation: desired.Started})
	runs(t, h, s)
	must(h.Remove(wants))
	must(h.DaemonReload(tctx))
	rec := effect.Record(h)
	if _, err := engine(rec, &providers{}).Apply(tctx, s); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Readlink(wants); err != nil || slices.Contains(rec.Lines(), "daemon-reload") {
		t.Errorf("%v, %q", err, rec.Lines())
	}
	converged(t, h, s)
}

// A unit that starts and ends again is an error of that unit with systemd's word
// for it, and not one of those that are well; what it was started with is tried
// again by the next run.
func TestCrashLoopIsNamed(t *testing.T) {
	h := newMachine()
	h.Put("/usr/bin/w", "w", 0o755)
	status := int32(3)
	h.Behave("w.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: status} })
	s := sealed(t, managed("/etc/systemd/system/w.service", "[Service]\nExecStart=/usr/bin/w\nRestart=always\n"),
		started("w.service"), started("containerd.service"))
	for range 2 {
		_, err := engine(h, &providers{}).Apply(t.Context(), s)
		u, ok := errors.AsType[*converge.UnitError](err)
		if !ok || u.Unit != "w.service" || !strings.Contains(err.Error(), "exit-code") || strings.Contains(err.Error(), "containerd") {
			t.Fatalf("error %v", err)
		}
		if p, err := engine(h, &providers{}).Plan(t.Context(), s); err != nil || p.Empty() {
			t.Fatalf("a unit that crashes is planned as %v, %v", verbs(p), err)
		}
	}
	status = 0
	runs(t, h, s)
	converged(t, h, s)
}

// TestCrashLoopEnds: a unit in the pause of its crash loop starts with what is good at once,
// whatever its start limit says.
func TestCrashLoopEnds(t *testing.T) {
	for name, limit := range map[string]string{"short": "", "not to be stopped": "[Unit]\nRefuseManualStop=yes\n", "at its limit": "[Unit]\nStartLimitIntervalSec=86400\nStartLimitBurst=1\n"} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put("/usr/bin/w", "w", 0o755)
			status := int32(3)
			h.Behave("w.service", func(memory.Start) memory.Outcome { return memory.Outcome{Status: status} })
			st := sealed(t, managed("/etc/systemd/system/w.service", limit+"[Service]\nExecStart=/usr/bin/w\nRestart=always\nRestartSec=600\n"), started("w.service"))
			if _, err := engine(h, &providers{}).Apply(t.Context(), st); err == nil {
				t.Fatal("it runs")
			}
			status = 0
			began := h.Now()
			runs(t, h, st)
			if took := h.Now().Sub(began); took > time.Minute && !strings.Contains(limit, "RefuseManualStop") {
				t.Errorf("it took %s", took)
			}
			converged(t, h, st)
		})
	}
}

// Also= names units that systemctl enables along; one that the state speaks of is
// as the state says.
func TestAlsoIsEnabled(t *testing.T) {
	const also = "containerd.service"
	define := func(h *machine) {
		h.Put("/etc/systemd/system/w.service", "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\nAlso="+also+" w-nowhere.socket\n", 0o644)
		h.Flush()
	}
	link := "/etc/systemd/system/multi-user.target.wants/" + also
	for name, c := range map[string]struct {
		more []desired.Resource
		want bool
	}{
		"named":              {nil, true},
		"disabled by itself": {[]desired.Resource{&desired.Unit{Name: also, Enablement: desired.Disabled}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			define(h)
			before := others(h)
			st := sealed(t, append(c.more, &desired.Unit{Name: "w.service", Enablement: desired.Enabled})...)
			runs(t, h, st)
			if _, err := h.Readlink(link); (err == nil) != c.want {
				t.Errorf("the link of %s: %v, want it %v", also, err, c.want)
			}
			converged(t, h, st)
			runs(t, h, sealed(t))
			if diff := cmp.Diff(before, others(h)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A drop-in says who starts a unit, too, as to systemctl enable; it is one that comes in the
// same run, or one of others.
func TestDropInIsInstalled(t *testing.T) {
	const definition = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
	h := newMachine()
	h.Put("/etc/systemd/system/w.service.d/theirs.conf", "[Install]\nRequiredBy=containerd.service\n", 0o644)
	h.Flush()
	before := others(h)
	ours := managed("/etc/systemd/system/w.service.d/ours.conf", "[Install]\nWantedBy=containerd.service\n")
	st := sealed(t, managed("/etc/systemd/system/w.service", definition), ours,
		&desired.Unit{Base: desired.Base{After: []desired.ID{ours.ID()}}, Name: "w.service", Enablement: desired.Enabled})
	runs(t, h, st)
	for _, dir := range []string{"multi-user.target.wants", "containerd.service.wants", "containerd.service.requires"} {
		if _, err := h.Readlink("/etc/systemd/system/" + dir + "/w.service"); err != nil {
			t.Error(err)
		}
	}
	converged(t, h, st)
	runs(t, h, sealed(t))
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}

// An empty value in a drop-in takes back what was said before it, of all but Also=, and drop-ins
// are read in the order of their own names, wherever they lie.
func TestInstallIsTakenBack(t *testing.T) {
	const definition = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\nRequiredBy=multi-user.target\nAlias=v.service\nAlso=containerd.service\n"
	const reset = "[Install]\nWantedBy=\nRequiredBy=\nAlias=\nAlso=\nWantedBy=kubernetes.target\n"
	h := newMachine()
	h.Put("/usr/lib/systemd/system/w.service", definition, 0o644)
	h.Put("/etc/systemd/system/w.service.d/20-last.conf", reset, 0o644)
	h.Put("/usr/lib/systemd/system/w.service.d/10-first.conf", "[Install]\nWantedBy=sockets.target\n", 0o644)
	h.Put("/usr/lib/systemd/system/w.service.d/30-more.conf", "[Install]\nRequiredBy=timers.target\n", 0o644)
	h.Flush()
	before := others(h)
	st := sealed(t, &desired.Unit{Name: "w.service", Enablement: desired.Enabled})
	runs(t, h, st)
	for link, want := range map[string]bool{
		"multi-user.target.wants/w.service": false, "multi-user.target.requires/w.service": false, "v.service": false,
		"sockets.target.wants/w.service": false, "kubernetes.target.wants/w.service": true, "timers.target.requires/w.service": true,
		"multi-user.target.wants/containerd.service": true,
	} {
		if _, err := h.Readlink("/etc/systemd/system/" + link); (err == nil) != want {
			t.Errorf("%s: %v, want it %v", link, err, want)
		}
	}
	converged(t, h, st)
	runs(t, h, sealed(t))
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}

// Of a template the default instance is enabled that is named last.
func TestDefaultInstanceIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct{ dropIn, want string }{
		"another":  {"DefaultInstance=b\n", "w@b.service"},
		"none":     {"DefaultInstance=\n", ""},
		"as it is": {"", "w@a.service"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			h.Put("/usr/lib/systemd/system/w@.service", "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=kubernetes.target\nDefaultInstance=a\n", 0o644)
			h.Put("/etc/systemd/system/w@.service.d/10.conf", "[Install]\n"+c.dropIn, 0o644)
			h.Flush()
			st := sealed(t, &desired.Unit{Name: "w@.service", Enablement: desired.Enabled})
			runs(t, h, st)
			names, err := h.ReadDir("/etc/systemd/system/kubernetes.target.wants")
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			converged(t, h, st)
		})
	}
}

// A unit that another one upholds has its link like one that it wants, and a disabled one has
// none.
func TestUpheldIsEnabled(t *testing.T) {
	const link = "/etc/systemd/system/kubernetes.target.upholds/w.service"
	h := newMachine()
	h.Put("/usr/lib/systemd/system/w.service", "[Service]\nExecStart=/bin/true\n[Install]\nUpheldBy=kubernetes.target\n", 0o644)
	h.Flush()
	before := others(h)
	st := sealed(t, &desired.Unit{Name: "w.service", Enablement: desired.Enabled})
	runs(t, h, st)
	if _, err := h.Readlink(link); err != nil {
		t.Error(err)
	}
	converged(t, h, st)
	runs(t, h, sealed(t))
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
	h.PutLink("/usr/lib/systemd/system/w.service", strings.Replace(link, "kubernetes", "timers", 1), 0)
	st = sealed(t, &desired.Unit{Name: "w.service", Enablement: desired.Disabled})
	runs(t, h, st)
	must(h.DaemonReload(tctx))
	if u, err := h.Unit(tctx, "w.service"); err != nil || u.UnitFileState != "disabled" {
		t.Errorf("systemd says %s, %v", u.UnitFileState, err)
	}
	converged(t, h, st)
}

// A link that was there before berth, and that one document wanted, comes back where the next
// has taken it away.
func TestAdoptedLinkThatIsTakenAwayComesBack(t *testing.T) {
	const vendor = "/usr/lib/systemd/system/v.service"
	h := newMachine()
	h.Put(vendor, "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	h.PutLink(vendor, "/etc/systemd/system/multi-user.target.wants/v.service", 0)
	before := others(h)
	unit := func(e desired.Enablement) *desired.Unit { return &desired.Unit{Name: "v.service", Enablement: e} }
	runs(t, h, sealed(t, unit(desired.Enabled)))
	disabled := sealed(t, unit(desired.Disabled), managed("/etc/systemd/system/v.service", "[Service]\nExecStart=/usr/bin/containerd\n"))
	if p := runs(t, h, disabled); len(p.Kept) > 0 {
		t.Errorf("kept %q", p.Kept)
	}
	converged(t, h, disabled)
	runs(t, h, sealed(t))
	if diff := cmp.Diff(before, others(h)); diff != "" {
		t.Error(diff)
	}
}
