package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestRestoreText(t *testing.T) {
	want := `# Written by berth; it goes when the change on trial is confirmed or taken back.
[Unit]
Description=Go back to the last good configuration of this node
ConditionPathExists=/var/lib/berth/trial.json
RequiresMountsFor=/var/lib/berth/contracts
Before=containerd.service kubelet.service

[Service]
Type=oneshot
ExecStart=/usr/local/bin/berth node restore
TimeoutStartSec=3min

[Install]
WantedBy=multi-user.target
`
	if d := cmp.Diff(want, restoreText("/usr/local/bin/berth", []string{"containerd.service", "kubelet.service"})); d != "" {
		t.Error(d)
	}
}

// A path that systemd would read otherwise is quoted (systemd.service(5)).
func TestWord(t *testing.T) {
	for p, want := range map[string]string{
		"/usr/local/bin/berth": "/usr/local/bin/berth",
		"/opt/my tools/berth":  `"/opt/my tools/berth"`,
		`/opt/100%$a"b/berth`:  `"/opt/100%%$$a\"b/berth"`,
	} {
		if got := word(p); got != want {
			t.Errorf("%s became %s, want %s", p, got, want)
		}
	}
}

// What starts before the unit could is left out of its order.
func TestOrderable(t *testing.T) {
	after := []string{"basic.target", "sysinit.target"}
	for _, c := range []struct {
		st   host.UnitStatus
		want bool
	}{
		{host.UnitStatus{ID: "a.service", LoadState: "loaded", After: after}, true},
		{host.UnitStatus{ID: "a.service", LoadState: "loaded", After: []string{"local-fs.target"}}, false},
		{host.UnitStatus{ID: "a.service", LoadState: "not-found", After: after}, false},
		{host.UnitStatus{ID: "a.socket", LoadState: "loaded", After: after}, false},
	} {
		if got := Orderable(c.st); got != c.want {
			t.Errorf("%+v: %v", c.st, got)
		}
	}
}

func TestContracts(t *testing.T) {
	h := memory.New()
	if c, err := Good(h, desired.OwnerAKS); c != nil || err != nil {
		t.Fatal(c, err)
	}
	a, b := &Contract{Document: []byte("a"), Facts: []byte(`{"x":1}`)}, &Contract{Document: []byte("b")}
	for _, err := range []error{Keep(h, desired.OwnerAKS, a), Keep(h, desired.OwnerOSC, b), KeepTried(h, desired.OwnerAKS, b)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if c, err := Good(h, desired.OwnerAKS); err != nil || !c.Same(a) || string(c.Facts) != `{"x":1}` {
		t.Error(c, err)
	}
	for range 2 { // a run that is cut off does it again
		if err := Promote(h, desired.OwnerAKS); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := Good(h, desired.OwnerAKS); err != nil || !c.Same(b) {
		t.Error(c, err)
	}
	if err := Forget(h, desired.OwnerAKS); err != nil {
		t.Fatal(err)
	}
	names, err := h.ReadDir(Dir)
	if d := cmp.Diff([]string{"osc"}, names); d != "" || err != nil {
		t.Error(d, err)
	}
}

// A contract that can't be read is none: there is nothing to go back to. A note that
// can't be read is an error: something is on trial, and nobody knows what.
func TestTorn(t *testing.T) {
	h := memory.New()
	h.Put(goodPath(desired.OwnerAKS), `{"document":`, 0o600)
	if c, err := Good(h, desired.OwnerAKS); c != nil || err != nil {
		t.Error(c, err)
	}
	h.Put(notePath, `{"owner":`, 0o600)
	if n, err := Load(h); n != nil || err == nil || !strings.Contains(err.Error(), notePath) {
		t.Error(n, err)
	}
}

// Nothing of another machine's disk is left.
func TestClear(t *testing.T) {
	h := memory.New()
	before := h.Tree("/etc", "/run")
	n := &Note{Owner: desired.OwnerAKS, Sum: "s", Boot: ledger.Boot{Kernel: "b"}, Units: []string{"k.service"}, Until: time.Unix(1, 0)}
	for _, err := range []error{
		Keep(h, desired.OwnerAKS, &Contract{Document: []byte("a")}), Arm(h, n, "/usr/bin/berth", nil),
		ArmTimer(t.Context(), h, "/usr/bin/berth", time.Minute), Clear(t.Context(), h),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	after := h.Tree("/etc", "/run")
	for _, dir := range []string{"/etc/systemd/system/multi-user.target.wants", "/run/systemd", "/run/systemd/system"} {
		delete(after, dir)
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
	if names, err := h.ReadDir(Dir); len(names) > 0 || err != nil {
		t.Error(names, err)
	}
	if got, err := Load(h); got != nil || err != nil {
		t.Error(got, err)
	}
}

// A way back that failed is tried again for as long as something is on trial, and never
// at the cost of the next trial.
func TestRevertIsTriedAgain(t *testing.T) {
	const service = "berth-revert.service"
	h := memory.New()
	calls, code := 0, 1
	h.Program("/usr/bin/berth", func(host.Command) host.Output { calls++; return host.Output{ExitCode: code} })
	n := &Note{Owner: desired.OwnerAKS, Sum: "s", Boot: ledger.Boot{Kernel: "b"}}
	arm := func() {
		t.Helper()
		if err := errors.Join(Arm(h, n, "/usr/bin/berth", nil), ArmTimer(t.Context(), h, "/usr/bin/berth", time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	pass := func() {
		t.Helper()
		if err := h.Sleep(t.Context(), 25*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	arm()
	if err := h.StartUnit(t.Context(), service); err == nil {
		t.Fatal("the way back did not fail")
	}
	pass()
	if calls != 3 {
		t.Errorf("%d tries in 25 seconds", calls)
	}
	if err := Disarm(t.Context(), h, n); err != nil {
		t.Fatal(err)
	}
	arm()
	pass()
	if calls != 3 {
		t.Errorf("it goes back from the next trial: %d tries", calls)
	}
	code = 0
	if err := h.StartUnit(t.Context(), service); err != nil || calls != 4 {
		t.Error(calls, err)
	}
	if pass(); calls != 4 {
		t.Errorf("%d tries after one that did it", calls)
	}
}

// A way back that waits for the lock of the run that arms the next trial does not go back from
// that.
func TestAWayBackThatWaits(t *testing.T) {
	h := memory.New()
	h.Put(notePath, "{}", 0o600)
	h.Put("/usr/bin/berth", "", 0o755)
	h.Behave(revertUnit, func(memory.Start) memory.Outcome { return memory.Outcome{Hang: true} })
	for range 2 {
		if err := ArmTimer(t.Context(), h, "/usr/bin/berth", time.Minute); err != nil {
			t.Fatal(err)
		}
		if st, err := h.Unit(t.Context(), revertUnit); err != nil || st.ActiveState != "inactive" {
			t.Errorf("it is %s, %v", st.ActiveState, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_ = h.StartUnit(ctx, revertUnit) // as the timer does
		cancel()
	}
}
