package converge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
)

const forward = "/proc/sys/net/ipv4/ip_forward"

func parameter(value string) *desired.Sysctl {
	return &desired.Sysctl{Key: "net.ipv4.ip_forward", Value: value}
}

func client(server string) *desired.ClientCertificate {
	return &desired.ClientCertificate{NodeName: "n1", Server: server, CA: "ca", CAFile: "/etc/kubernetes/certs/ca.crt",
		Token: "abcdef.secret", Kubeconfig: kubeconfig, CertDir: "/var/lib/kubelet/pki", Timeout: time.Minute}
}

// What is no path has owners, too: two contracts may want the same of it, and what
// they want differently is refused with both named, or taken over.
func TestOwnersOfLiveState(t *testing.T) {
	unit := func(a desired.Activation) *desired.Unit {
		return &desired.Unit{Name: "containerd.service", Activation: a}
	}
	for name, c := range map[string]struct {
		id                  string
		mine, alike, theirs desired.Resource
	}{
		"kernel parameter": {"sysctl:net.ipv4.ip_forward", parameter("1"), parameter(" 1 "), parameter("0")},
		"activation":       {"unit:containerd.service", unit(desired.Started), unit(desired.Started), unit(desired.Stopped)},
		"cluster":          {"credential:" + kubeconfig, client("https://one"), client("https://one"), client("https://two")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			runs(t, h, sealed(t, c.mine))
			runs(t, h, of(desired.OwnerOSC, sealed(t, c.alike)))
			converged(t, h, sealed(t, c.mine))
			runs(t, h, of(desired.OwnerOSC, sealed(t)))
			converged(t, h, sealed(t, c.mine))
			h.ForgetJobs()
			before, theirs := others(h), of(desired.OwnerOSC, sealed(t, c.theirs))
			for _, err := range []error{second(fetching(h).Plan(t.Context(), theirs)), second(fetching(h).Apply(t.Context(), theirs))} {
				refused(t, err, c.id, desired.OwnerOSC, desired.OwnerAKS)
			}
			if diff := cmp.Diff(before, others(h)); diff != "" || joinJobs(h) != "" {
				t.Errorf("refused, but %s%s", diff, joinJobs(h))
			}
			converged(t, h, sealed(t, c.mine))
			if _, err := takingOver(h).Apply(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			converged(t, h, theirs)
			refused(t, second(fetching(h).Plan(t.Context(), sealed(t, c.mine))), c.id, desired.OwnerAKS, desired.OwnerOSC)
		})
	}
}

func second[T any](_ T, err error) error { return err }

// A value that berth set comes back when the last contract goes, and one that
// somebody has changed since stays and is reported.
func TestValuesComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		meddle func(h *machine)
		want   string
		kept   bool
	}{
		"as it was set":  {func(*machine) {}, "0", false},
		"changed since":  {func(h *machine) { must(h.WriteValue(forward, []byte("2\n"))) }, "2", true},
		"set back since": {func(h *machine) { must(h.WriteValue(forward, []byte("0\n"))) }, "0", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			runs(t, h, sealed(t, parameter("1")))
			runs(t, h, of(desired.OwnerOSC, sealed(t, parameter("1"))))
			runs(t, h, sealed(t))
			if got := value(h); got != "1" {
				t.Fatalf("of two contracts one went: %q", got)
			}
			c.meddle(h)
			plan := runs(t, h, of(desired.OwnerOSC, sealed(t)))
			if got := value(h); got != c.want || (len(plan.Kept) > 0) != c.kept {
				t.Errorf("it is %q, kept %q", got, plan.Kept)
			}
			if again := runs(t, h, of(desired.OwnerOSC, sealed(t))); len(again.Kept)+len(again.Actions) > 0 {
				t.Errorf("a second withdrawal: %+v", again)
			}
		})
	}
}

// TestValuesComeBackAfterACut: a change of a value that was cut off between the ledger and the
// kernel leaves one of two values of berth's, which is nobody else's; afterwards the ledger
// tells of one again.
func TestValuesComeBackAfterACut(t *testing.T) {
	for name, next := range map[string]*desired.State{
		"withdrawn at once":   sealed(t),
		"asked for as it was": sealed(t, parameter("1")),
		"asked for again":     sealed(t, parameter("2")),
	} {
		t.Run(name, func(t *testing.T) {
			for n, first := 1, true; first; n++ {
				for m, second := 0, true; second; m++ {
					h := newMachine()
					runs(t, h, sealed(t, parameter("1")))
					first = cutOff(t, h, n)
					if m > 0 {
						second = cutOff(t, h, m)
					}
					runs(t, h, next)
					if plan := runs(t, h, sealed(t)); len(plan.Kept) > 0 || value(h) != "0" {
						t.Errorf("cut after effect %d, and after %d: it is %q, kept %q", n, m, value(h), plan.Kept)
					}
				}
			}
		})
	}
	h := newMachine()
	runs(t, h, sealed(t, parameter("1")))
	for n, hit := 1, true; hit && value(h) == "1"; n++ {
		hit = cutOff(t, h, n)
	}
	runs(t, h, sealed(t, parameter("2")))
	must(h.WriteValue(forward, []byte("1\n")))
	if plan := runs(t, h, sealed(t)); len(plan.Kept) != 1 || value(h) != "1" {
		t.Errorf("somebody's value, which was berth's before: it is %q, kept %q", value(h), plan.Kept)
	}
}

// cutOff asks for another value, and kills the run after an effect; false: it came to its end.
func cutOff(t *testing.T, h *machine, after int) bool {
	t.Helper()
	in := effect.Inject(h, effect.Plan{{At: after, Kind: effect.StopAfter}})
	_, _ = engine(in, &providers{}).Apply(t.Context(), sealed(t, parameter("2")))
	h.Kill()
	return in.Hit() != nil
}

func value(h *machine) string {
	data, err := h.ReadFile(forward)
	must(err)
	return strings.TrimSpace(string(data))
}

// The end of a contract that touched a bit of everything: values, what ran, what
// was stopped and what was enabled are as before, and nobody else's unit is down.
func TestLeave(t *testing.T) {
	const mine, upgrades, bystander = "mine.service", "upgrades.service", "bystander.service"
	h := newMachine()
	h.Put("/usr/bin/w", "w", 0o755)
	h.Put("/etc/systemd/system/"+mine, "[Service]\nExecStart=/usr/bin/w old\n", 0o644)
	h.Put("/usr/lib/systemd/system/"+upgrades, "[Service]\nExecStart=/usr/bin/w\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	h.Put("/usr/lib/systemd/system/"+bystander, "[Unit]\nRequires="+mine+"\nAfter="+mine+"\n[Service]\nExecStart=/usr/bin/w\n", 0o644)
	h.PutLink("/usr/lib/systemd/system/"+upgrades, "/etc/systemd/system/multi-user.target.wants/"+upgrades, 0)
	for _, u := range []string{mine, upgrades, bystander} {
		must(h.StartUnit(tctx, u))
	}
	h.Advance(time.Minute)
	before := others(h)
	runs(t, h, sealed(t, parameter("1"),
		managed("/etc/systemd/system/"+mine, "[Service]\nExecStart=/usr/bin/w new\n"),
		managed("/etc/systemd/system/containerd.service.d/x.conf", "[Service]\nNice=5\n"),
		started(mine), &desired.Unit{Name: upgrades, Enablement: desired.Disabled, Activation: desired.Stopped},
		&desired.Unit{Name: "containerd.service", Enablement: desired.Enabled, Activation: desired.Started}))
	activities(t, h, map[string]string{mine: "active", upgrades: "inactive", bystander: "active", "containerd.service": "active"})
	h.Advance(time.Minute)
	runs(t, h, sealed(t))
	activities(t, h, map[string]string{mine: "active", upgrades: "active", bystander: "active", "containerd.service": "inactive"})
	if diff := cmp.Diff(before, others(h)); diff != "" || value(h) != "0" {
		t.Errorf("ip_forward %s, tree %s", value(h), diff)
	}
}

func activities(t *testing.T, h *machine, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name := range want {
		st, err := h.Unit(tctx, name)
		must(err)
		got[name] = st.ActiveState
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is kept is told once: it is not berth's any more.
func TestKeptIsToldOnce(t *testing.T) {
	h := newMachine()
	runs(t, h, sealed(t, managed("/etc/x", "a\n")))
	h.Put("/etc/x", "edited\n", 0o644)
	if plan := runs(t, h, sealed(t)); len(plan.Kept) != 1 {
		t.Errorf("kept %q", plan.Kept)
	}
	if plan := runs(t, h, sealed(t)); len(plan.Kept) > 0 {
		t.Errorf("kept again %q", plan.Kept)
	}
	has(t, h, "/etc/x", "edited\n")
}

// A credential is root's alone, also after somebody opened it.
func TestCredentialIsPrivate(t *testing.T) {
	h := newMachine()
	st := sealed(t, client("https://one"))
	runs(t, h, st)
	for _, p := range []string{"/var/lib/kubelet/pki/kubelet-client-berth.pem", kubeconfig} {
		must(h.Chmod(p, 0o644))
		runs(t, h, st)
		if info, err := h.Lstat(p); err != nil || info.Mode != 0o600 {
			t.Errorf("%s: %v, %v", p, info, err)
		}
	}
	converged(t, h, st)
}

// A unit that berth has started stops when nobody wants it any more, also where those who
// wanted it running were not the last, or not to the end, to want something of it.
func TestStartedByWhoWentFirst(t *testing.T) {
	started := &desired.Unit{Name: "containerd.service", Activation: desired.Started}
	enabled := &desired.Unit{Name: "containerd.service", Enablement: desired.Enabled}
	none := func(o desired.Owner) *desired.State { return of(o, sealed(t)) }
	for name, steps := range map[string][]*desired.State{
		"another owner stays": {of(desired.OwnerOSC, sealed(t, started)), sealed(t, enabled), none(desired.OwnerOSC)},
		"another was first":   {sealed(t, enabled), of(desired.OwnerOSC, sealed(t, started)), sealed(t, enabled), none(desired.OwnerOSC)},
		"the same owner":      {sealed(t, started), sealed(t, enabled)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newMachine()
			for _, s := range append(steps, none(desired.OwnerAKS)) {
				runs(t, h, s)
				converged(t, h, s)
			}
			if st, err := h.Unit(tctx, "containerd.service"); err != nil || st.ActiveState != "inactive" {
				t.Errorf("it is %s, %v", st.ActiveState, err)
			}
		})
	}
}
