package faults_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// mutation is what somebody does to a managed resource behind berth's back.
type mutation struct {
	name string
	do   func(h *memory.Host)
	// plan is what berth must plan, in any order; nothing if it must refuse.
	plan []string
	// jobs are what apply may do to units.
	jobs []string
	// refused is a part of the error where berth must not repair.
	refused string
	// stays are paths that are others than before, and rightly so.
	stays []string
	// redefined: a unit runs with what stays.
	redefined bool
}

// Every managed resource is broken in turn, in every way that is known. The plan
// shows exactly that, apply repairs it and restarts what it must and nothing
// else; what can't be repaired is refused before anything changes.
func TestMutations(t *testing.T) {
	all := scenarios(t)
	for i, s := range append(all[:2:2], rareKinds(t)) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			fresh := copied(remembered(applied(s.machine, s.config), s.config))
			h := fresh()
			st := s.config.state(h)
			muts, broken := []mutation{}, 0
			for _, r := range st.Resources {
				if i == 2 && !slices.Contains(rare, r.Kind()) {
					continue
				}
				own := mutations(h, st, r)
				if len(own) > 0 {
					broken++
				} else if !slices.Contains(unbreakable, r.Kind()) {
					t.Errorf("%s: nobody knows how to break a %s", r.ID(), r.Kind())
				}
				muts = append(muts, own...)
			}
			for i := 0; i < len(muts); i += stride {
				s.repair(t, fresh(), muts[i])
			}
			t.Logf("%d mutations, tried every %d, of %d of %d resources", len(muts), stride, broken, len(st.Resources))
		})
	}
}

// rare are the kinds that the first scenarios have none of.
var rare = []string{"swap", "mount", "link", "sshd", "podnetwork"}

// rareKinds is a machine that has them.
func rareKinds(t testing.TB) scenario {
	t.Helper()
	c := configure(t, "full.json").with(t, addSwap, bridged)
	c.more = []desired.Resource{
		&desired.Link{Path: "/var/log/rare", Target: "/var/log/azure"},
		&desired.Mount{Source: "tmpfs", Target: "/srv", FSType: "tmpfs", Options: []string{"noexec"}},
	}
	return scenario{"rare kinds", serving(prebaked), c, nil}
}

// unbreakable are the kinds of which nothing stands on a machine.
var unbreakable = []string{"check"}

// remembered is a machine of which somebody has read the programs, as after each run.
func remembered(machine func() *memory.Host, c *configuration) func() *memory.Host {
	return func() *memory.Host {
		h := machine()
		check(engine(h, nil, 1).Remember(tctx, c.state(h)))
		return h
	}
}

func (s scenario) repair(t *testing.T, h *memory.Host, m mutation) {
	t.Helper()
	want := look(h)
	m.do(h)
	before := len(allJobs(h))
	if m.refused != "" {
		s.refuses(t, h, m)
		return
	}
	got := s.plan(t, h)
	slices.Sort(got)
	slices.Sort(m.plan)
	if d := cmp.Diff(m.plan, got); d != "" {
		t.Errorf("%s: plan (-want +got): %s", m.name, d)
		return
	}
	if _, err := s.run(h, h); err != nil {
		t.Errorf("%s: %v", m.name, err)
		return
	}
	s.repaired(t, h, m, want, allJobs(h)[before:])
}

func (s scenario) repaired(t *testing.T, h *memory.Host, m mutation, want outcome, did []string) {
	t.Helper()
	if !slices.Equal(did, m.jobs) {
		t.Errorf("%s: jobs %q, want %q", m.name, did, m.jobs)
	}
	if left := s.plan(t, h); len(left) > 0 {
		t.Errorf("%s: after the repair there is still %v", m.name, left)
	}
	for _, name := range units {
		if st, err := h.Unit(tctx, name); err != nil || st.NeedDaemonReload || st.LoadState != "loaded" {
			t.Errorf("%s: systemd holds an old %s: %+v, %v", m.name, name, st, err)
		}
	}
	now := look(h)
	for _, p := range m.stays {
		for _, tree := range []map[string]string{now.Tree, want.Tree} {
			maps.DeleteFunc(tree, func(q, _ string) bool { return q == p || strings.HasPrefix(q, p+"/") })
		}
	}
	now.Jobs = want.Jobs
	if m.redefined {
		now.Units = want.Units
	}
	if d := diff(want, now); d != "" {
		t.Errorf("%s: after the repair %s", m.name, d)
	}
}

// refuses: the error says what is in the way, and the machine is as it was.
func (s scenario) refuses(t *testing.T, h *memory.Host, m mutation) {
	t.Helper()
	want := look(h)
	_, err := s.run(h, h)
	if err == nil || !strings.Contains(err.Error(), m.refused) {
		t.Errorf("%s: error %v, want one with %q", m.name, err, m.refused)
	}
	if d := diff(want, look(h)); d != "" {
		t.Errorf("%s: refused, but %s", m.name, d)
	}
}

func mutations(h *memory.Host, st *desired.State, r desired.Resource) []mutation {
	switch r := r.(type) {
	case *desired.File:
		return ofFile(h, st, r)
	case *desired.Directory:
		return ofDirectory(h, st, r)
	case *desired.Unit:
		return ofUnit(h, r)
	case *desired.Sysctl:
		return ofSysctl(h, r)
	case *desired.Module:
		return ofModule(st, r)
	case *desired.TrustAnchor:
		return ofTrust(h, r)
	case *desired.Artifact:
		return ofArtifact(h, st, r)
	case *desired.ClientCertificate:
		return ofCredential(h, r)
	case *desired.ServingCertificate:
		return ofServing(h, r)
	}
	return othersOf(h, r)
}

func othersOf(h *memory.Host, r desired.Resource) []mutation {
	switch r := r.(type) {
	case *desired.Block:
		return ofBlock(r)
	case *desired.Sysfs:
		return ofSysfs(h, r)
	case *desired.PacketFilter:
		return ofPacketFilter(r)
	case *desired.Image:
		return ofImage(r)
	case *desired.NodeObject:
		return ofNode(r)
	case *desired.Swap:
		return ofSwap(r)
	case *desired.Mount:
		return ofMount(r)
	case *desired.Link:
		return ofLink(r)
	case *desired.SSHD:
		return ofServer(r)
	case *desired.PodNetwork:
		return ofPodNetwork(r)
	}
	return nil
}

// one is a mutation that costs no restart and one action.
func one(r desired.Resource, what, verb string, do func(h *memory.Host)) mutation {
	return mutation{name: string(r.ID()) + " " + what, plan: []string{verb + " " + string(r.ID())}, do: do}
}

func refused(r desired.Resource, what, why string, do func(h *memory.Host)) mutation {
	return mutation{name: string(r.ID()) + " " + what, refused: why, do: do}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func content(h *memory.Host, p string) string {
	data, err := h.ReadFile(p)
	check(err)
	return string(data)
}

// edit keeps mode and owner.
func edit(h *memory.Host, p string, change func(string) string) {
	info, err := h.Lstat(p)
	check(err)
	text := change(content(h, p))
	h.Put(p, text, info.Mode.Perm())
	check(h.Chown(p, info.UID, info.GID))
}

func add(text string) func(string) string { return func(s string) string { return s + text } }

func empty(string) string { return "" }

// removeAll is rm -r.
func removeAll(h *memory.Host, p string) {
	if names, err := h.ReadDir(p); err == nil {
		for _, n := range names {
			removeAll(h, p+"/"+n)
		}
	}
	check(h.Remove(p))
}
