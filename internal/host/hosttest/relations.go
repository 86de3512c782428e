package hosttest

import (
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

var relations = []testCase{
	{"who needs whom", whoNeedsWhom},
	{"restart and stop of what others need", followersRestart},
	{"needed unit dies", neededDies},
	{"requisite", requisite},
	{"stopped followers stay stopped", followersStay},
}

const (
	base  = "berth-conformance-base.service"
	bound = "berth-conformance-bound.service"
	chain = "berth-conformance-chain.service"
	part  = "berth-conformance-part.service"
	user  = "berth-conformance-user.service"
	wants = "berth-conformance-wants.service"
)

// defineRelated makes a service, and one for each way to depend on it.
func defineRelated(t *testing.T, h host.Host) {
	t.Helper()
	on := func(how, name string) string {
		return "[Unit]\n" + how + "=" + name + "\nAfter=" + name + "\n" + sleeper
	}
	define(t, h, map[string]string{
		base: sleeper, user: on("Requires", base), bound: on("BindsTo", base), part: on("PartOf", base),
		wants: on("Wants", base), chain: on("Requires", user),
	})
	start(t, h, chain, bound, part, wants)
}

func whoNeedsWhom(t *testing.T, h host.Host, _ string) {
	defineRelated(t, h)
	lists(t, "dependents of base", unitStatus(t, h, base).Dependents, bound, part, user)
	lists(t, "dependents of user", unitStatus(t, h, user).Dependents, chain)
	lists(t, "dependents of chain", unitStatus(t, h, chain).Dependents)
	lists(t, "needs of chain", unitStatus(t, h, chain).Needs, user)
	for _, name := range []string{user, bound, part} {
		lists(t, "needs of "+name, unitStatus(t, h, name).Needs, base)
	}
	lists(t, "needs of wants", unitStatus(t, h, wants).Needs)
	for name, want := range map[string][]string{user: {base}, bound: {base}, chain: {user}, part: nil, wants: nil} {
		lists(t, "requires of "+name, unitStatus(t, h, name).Requires, want...)
	}
}

// runs are the present runs of the units that depend on base.
func runs(t *testing.T, h host.Host) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{bound, chain, part, user, wants} {
		out[name] = state(t, h, name, "loaded", "active", "running").InvocationID
	}
	return out
}

func followersRestart(t *testing.T, h host.Host, _ string) {
	defineRelated(t, h)
	before := runs(t, h)
	must(t, h.RestartUnit(t.Context(), base))
	for _, name := range []string{bound, chain, part, user} {
		until(t, h, name, func(st host.UnitStatus) bool {
			return st.ActiveState == "active" && st.InvocationID != before[name]
		})
	}
	if after := runs(t, h); after[wants] != before[wants] {
		t.Error("what merely wants a unit restarted with it")
	}
	must(t, h.StopUnit(t.Context(), base))
	for _, name := range []string{bound, chain, part, user} {
		eventually(t, h, name, "inactive")
	}
	state(t, h, wants, "loaded", "active", "running")
	start(t, h, base)
	for _, name := range []string{bound, chain, part, user} {
		state(t, h, name, "loaded", "inactive", "dead")
	}
}

// neededDies: only what is bound ends with it.
func neededDies(t *testing.T, h host.Host, _ string) {
	defineRelated(t, h)
	before := runs(t, h)
	_, err := h.Run(t.Context(), host.Command{Path: "systemctl", Args: []string{"kill", "--signal=KILL", base}})
	must(t, err)
	eventually(t, h, base, "failed")
	eventually(t, h, bound, "inactive")
	for _, name := range []string{chain, part, user, wants} {
		if st := state(t, h, name, "loaded", "active", "running"); st.InvocationID != before[name] {
			t.Errorf("%s restarted", name)
		}
	}
}

func requisite(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{base: sleeper, user: "[Unit]\nRequisite=" + base + "\nAfter=" + base + "\n" + sleeper})
	jobFails(t, h.StartUnit(t.Context(), user), "dependency")
	state(t, h, base, "loaded", "inactive", "dead")
	start(t, h, base, user)
	lists(t, "needs", unitStatus(t, h, user).Needs, base)
	lists(t, "requires", unitStatus(t, h, user).Requires, base)
	must(t, h.StopUnit(t.Context(), base))
	eventually(t, h, user, "inactive")
}

// followersStay: a restart starts no follower that did not run, but restarts one
// that ran without what it is part of.
func followersStay(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{base: sleeper, part: "[Unit]\nPartOf=" + base + "\n" + sleeper})
	start(t, h, base)
	must(t, h.RestartUnit(t.Context(), base))
	state(t, h, part, "loaded", "inactive", "dead")
	must(t, h.StopUnit(t.Context(), base))
	start(t, h, part)
	before := unitStatus(t, h, part)
	must(t, h.RestartUnit(t.Context(), base))
	until(t, h, part, func(st host.UnitStatus) bool {
		return st.ActiveState == "active" && st.InvocationID != before.InvocationID
	})
}
