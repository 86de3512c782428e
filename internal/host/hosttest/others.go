package hosttest

import (
	"path"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/internal/host"
)

// RunOthers checks what a host says of a unit that it has asked for before and that somebody
// else changes. Only for hosts with a real systemd: newHost connects anew.
func RunOthers(t *testing.T, newHost func(t *testing.T) host.Host) {
	const name, needed = "berth-conformance-others.service", "berth-conformance-needed.service"
	h, other := newHost(t), newHost(t)
	define(t, other, map[string]string{
		name: "[Unit]\nRequires=" + needed + "\nAfter=" + needed + "\n" + sleeper, needed: sleeper,
	})
	drop := path.Join(unitDir, name+".d", "10-a.conf")
	must(t, other.Mkdir(path.Dir(drop), 0o755))
	t.Cleanup(func() { _, _ = other.Remove(drop), other.Remove(path.Dir(drop)) })
	same := func(after string) {
		t.Helper()
		for _, unit := range []string{name, needed} {
			got, want := unitStatus(t, h, unit), unitStatus(t, newHost(t), unit)
			if want.ConditionTime.IsZero() { // who was connected at the start has heard it
				got.ConditionResult, got.AssertResult, got.ConditionTime = want.ConditionResult, want.AssertResult, want.ConditionTime
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(host.UnitStatus{}, "ActiveFor")); diff != "" {
				t.Errorf("%s, after %s (-anew +again):\n%s", unit, after, diff)
			}
			if late := want.ActiveFor - got.ActiveFor; (got.ActiveFor > 0) != (want.ActiveFor > 0) || late < 0 {
				t.Errorf("%s, after %s: active for %v, then for %v", unit, after, got.ActiveFor, want.ActiveFor)
			}
		}
	}
	ctx := t.Context()
	for round := range 4 {
		for _, step := range []struct {
			what string
			do   func() error
		}{
			{"a start", func() error { return other.StartUnit(ctx, name) }},
			{"a restart of what it needs", func() error { return other.RestartUnit(ctx, needed) }},
			{"a kill", func() error {
				_, err := other.Run(ctx, host.Command{Path: "/bin/systemctl", Args: []string{"kill", "-s", "KILL", needed}})
				until(t, other, needed, func(st host.UnitStatus) bool { return st.ActiveState == "failed" })
				return err
			}},
			{"a setting", func() error {
				_, err := other.Run(ctx, host.Command{Path: "/bin/systemctl", Args: []string{"set-property", "--runtime", needed, "CPUWeight=" + strconv.Itoa(50+round)}})
				return err
			}},
			{"a reset", func() error { return other.ResetFailed(ctx, needed) }},
			{"a stop", func() error { return other.StopUnit(ctx, name) }},
		} {
			must(t, step.do())
			same(step.what)
		}
	}
	must(t, other.StartUnit(ctx, name))
	same("a start")
	tick()
	put(t, other, drop, "[Service]\nNice=1\n")
	same("a drop-in")
	must(t, other.DaemonReload(ctx))
	same("a reload")
	must(t, other.Remove(drop))
	must(t, other.DaemonReload(ctx))
	same("a reload without it")
}
