package converge_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// scenario is a machine before an apply, and the state to apply.
type scenario struct {
	name    string
	machine func(t *testing.T) *machine
	state   func(t *testing.T) *desired.State
	// units are those that the state speaks of, or spoke of.
	units []string
	// anyOrder: some of them do not depend on others, and start in any order.
	anyOrder bool
}

func scenarios() []scenario {
	changed := func(t *testing.T) *desired.State {
		return sampleState(t, func(s *desired.State) {
			for _, r := range s.Resources {
				if f, ok := r.(*desired.File); ok && (f.Path == "/etc/default/kubelet" || f.Path == "/etc/containerd/config.toml") {
					f.Content = desired.Text("changed\n")
				}
			}
		})
	}
	both := []string{"containerd.service", "kubelet.service"}
	return append([]scenario{
		{"new node", func(*testing.T) *machine { return newMachine() }, func(t *testing.T) *desired.State { return sampleState(t) }, both, false},
		{"changed contract", settled, changed, both, false},
		{"taken over", contested, func(t *testing.T) *desired.State { return sampleState(t) }, both, false},
		{"all removed", settled, func(*testing.T) *desired.State { return &desired.State{Owner: desired.OwnerAKS} }, both[1:], false},
		{"drop-in goes", node, without(desired.FileID(limits)), both, false},
		{"drop-in goes with its unit", node, without(desired.FileID(limits), desired.UnitID("containerd.service")), nil, false},
		{"override goes", overridden, func(t *testing.T) *desired.State { return sampleState(t) }, both, false},
	}, busyScenarios()...)
}

// contested is a machine that another contract has furnished otherwise.
func contested(t *testing.T) *machine {
	h := newMachine()
	h.Put("/etc/kubernetes/azure.json", "{}", 0o600) // adopted
	st := &desired.State{Owner: desired.OwnerOSC}
	st.Add(managed("/etc/containerd/config.toml", "version = 9\n"), managed("/etc/kubernetes/notes", "theirs\n"),
		&desired.Directory{Path: "/etc/kubernetes/manifests", Mode: 0o755}, &desired.Link{Path: "/var/log/azure/latest", Target: "other.log"},
		&desired.Unit{Name: "containerd.service", Enablement: desired.Enabled})
	must(st.Seal())
	if _, err := seeded(h, 3).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	h.Flush()
	return h
}

func settled(t *testing.T) *machine {
	_, h := applied(t)
	h.Flush()
	return h
}

// seeded is an engine with one worker whose choice among ready actions follows
// from the seed.
func seeded(h host.Host, seed uint64) *converge.Engine {
	rng := rand.New(rand.NewPCG(seed, 1))
	return engine(h, &providers{}, func(o *converge.Options) { o.Pick, o.TakeOver = rng.IntN, true })
}

// outcome is what must not depend on faults.
type outcome struct {
	Tree  map[string]string
	Units map[string]string
	Jobs  []string
}

// look describes the tree without the stamps' invocation ids, which count
// starts, and the state of each unit with what it runs with.
func look(h *machine, s scenario, jobs bool) outcome {
	o := outcome{Tree: tree(h), Units: map[string]string{}}
	for path := range o.Tree {
		if len(path) > len("/run/berth/units/") && path[:len("/run/berth/units/")] == "/run/berth/units/" {
			o.Tree[path] = "a stamp"
		}
	}
	last := map[string]memory.Job{}
	for _, j := range h.Jobs() {
		last[j.Unit] = j
		if jobs {
			o.Jobs = append(o.Jobs, j.String())
		}
	}
	if s.anyOrder {
		slices.Sort(o.Jobs)
	}
	for _, unit := range s.units {
		st, err := h.Unit(tctx, unit)
		must(err)
		o.Units[unit] = fmt.Sprint(st.ActiveState, " reload:", st.NeedDaemonReload)
		if st.ActiveState != "inactive" {
			o.Units[unit] += fmt.Sprint(" ", last[unit].Definition, last[unit].Reads)
		}
	}
	return o
}

func undisturbed(t *testing.T, s scenario, seed uint64) (outcome, int) {
	t.Helper()
	h := s.machine(t)
	counting := effect.Inject(h, nil)
	if _, err := seeded(counting, seed).Apply(t.Context(), s.state(t)); err != nil {
		t.Fatal(err)
	}
	return look(h, s, true), counting.Count()
}

// Stopped dead at any effect and run again, the machine is the same, with the
// same unit states and the same restarts.
func TestKilledAnywhere(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want, effects := undisturbed(t, s, 7)
			for n := 1; n <= effects; n += stride {
				for _, kind := range sample(s, n, effect.StopBefore, effect.StopAfter) {
					h := s.machine(t)
					disturb(t, h, s, effect.Plan{{At: n, Kind: kind}})
					h.Kill()
					again(t, h, s)
					if diff := cmp.Diff(want, look(h, s, true)); diff != "" {
						t.Fatalf("%v at effect %d: %s", kind, n, diff)
					}
				}
			}
			t.Logf("%d effects, each with a kill before or after it, or with both", effects)
		})
	}
}

// disturb runs an apply that a fault hits.
func disturb(t *testing.T, h *machine, s scenario, plan effect.Plan) {
	t.Helper()
	in := effect.Inject(h, plan)
	_, err := seeded(in, 7).Apply(t.Context(), s.state(t))
	if in.Hit() == nil {
		t.Fatalf("no fault took place: %v", err)
	}
}

// again runs the apply to its end, and once more to see that nothing is left.
func again(t *testing.T, h *machine, s scenario) {
	t.Helper()
	if _, err := seeded(h, 7).Apply(t.Context(), s.state(t)); err != nil {
		t.Fatalf("the run after the fault: %v", err)
	}
	plan, err := seeded(h, 7).Plan(t.Context(), s.state(t))
	if err != nil || !plan.Empty() {
		t.Fatalf("the run after the fault left %v, %v", verbs(plan), err)
	}
}

// After a power cut at any effect, whatever of the un-synced survives, a run on
// the machine that boots makes it what an undisturbed run makes of it.
func TestPowerCutAnywhere(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want, effects := undisturbed(t, s, 7)
			cuts := 0
			for n := 1; n <= effects; n += stride {
				for _, seed := range sample(s, n, memory.LoseAll, memory.NamesOnly, uint64(n)+100, uint64(n)+10100) {
					h := s.machine(t)
					disturb(t, h, s, effect.Plan{{At: n, Kind: effect.StopAfter}})
					h.PowerCut(seed)
					h.Boot()
					again(t, h, s)
					if diff := cmp.Diff(afterBoot(want), afterBoot(look(h, s, false))); diff != "" {
						t.Fatalf("cut at effect %d, seed %d: %s", n, seed, diff)
					}
					cuts++
				}
			}
			t.Logf("%d effects, %d power cuts", effects, cuts)
		})
	}
}

// sample is one of several variants, another at each effect, where not all effects
// are tried, or where there are many of them.
func sample[T any](s scenario, n int, all ...T) []T {
	if stride > 1 || s.anyOrder {
		return all[n%len(all) : n%len(all)+1]
	}
	return all
}

// afterBoot leaves out what a boot resets: /run, and how often units started.
func afterBoot(o outcome) outcome {
	o.Jobs = nil
	for path := range o.Tree {
		if path == "/run" || len(path) > 5 && path[:5] == "/run/" {
			delete(o.Tree, path)
		}
	}
	return o
}

// An error at any effect fails the run, and the next one ends as if nothing had
// happened. Without second names of files, or without the attribute that says what berth
// wrote, a run goes on.
func TestErrorAnywhere(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want, effects := undisturbed(t, s, 7)
			for n := 1; n <= effects; n += stride {
				for _, errno := range sample(s, n, syscall.ENOSPC, syscall.EIO, syscall.EPERM) {
					h := s.machine(t)
					in := effect.Inject(h, effect.Plan{{At: n, Kind: effect.Fail, Err: errno}})
					_, err := seeded(in, 7).Apply(t.Context(), s.state(t))
					hit := in.Hit()
					unmarked := hit != nil && hit.Op == "xattr" && hit.Detail == host.ProvenanceName && host.NoXattrs(errno)
					if err == nil && (unmarked || hit != nil && hit.Op == "link" && host.NoLinks(errno)) {
						err = errno
					}
					if !errors.Is(err, errno) {
						t.Fatalf("%v at effect %d (%v): the run returned %v", errno, n, hit, err)
					}
					again(t, h, s)
					ends, got := want, look(h, s, true)
					if unmarked {
						ends.Tree, got.Tree = withoutProvenance(ends.Tree, hit.Target), withoutProvenance(got.Tree, hit.Target)
					}
					if diff := cmp.Diff(ends, got); diff != "" {
						t.Fatalf("%v at effect %d: %s", errno, n, diff)
					}
				}
			}
			t.Logf("%d effects, with errors at each", effects)
		})
	}
}

// provenance is what a file of the tree says of what berth wrote into it.
var provenance = regexp.MustCompile(` trusted\.berth="(\\.|[^"\\])*"`)

// withoutProvenance is a tree in which the file of a temporary name says nothing of it.
func withoutProvenance(tree map[string]string, temporary string) map[string]string {
	dir, base := path.Split(temporary)
	name := dir + strings.TrimSuffix(strings.TrimPrefix(base, ".berth."), ".new")
	tree = maps.Clone(tree)
	if text, ok := tree[name]; ok {
		tree[name] = provenance.ReplaceAllString(text, "")
	}
	return tree
}

// Whatever the schedule, the outcome is the same.
func TestParallelSchedules(t *testing.T) {
	s := scenarios()[0]
	want, _ := undisturbed(t, s, 7)
	for seed := range uint64(20) {
		h := s.machine(t)
		rng := rand.New(rand.NewPCG(seed, 2))
		e := engine(h, &providers{}, func(o *converge.Options) { o.Workers, o.Pick = 8, rng.IntN })
		if _, err := e.Apply(t.Context(), s.state(t)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, look(h, s, true)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// What a run reports as done after one that was cut off is durable: a power cut
// right after it loses nothing.
func TestDoneIsDurable(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want, effects := undisturbed(t, s, 7)
			for n := 1; n <= effects; n += stride {
				h := s.machine(t)
				disturb(t, h, s, effect.Plan{{At: n, Kind: effect.StopAfter}})
				h.Kill()
				again(t, h, s)
				h.PowerCut(memory.LoseAll)
				h.Boot()
				p, err := seeded(h, 7).Plan(t.Context(), s.state(t))
				if err != nil || slices.ContainsFunc(verbs(p), func(v string) bool { return !strings.HasPrefix(v, "set ") }) {
					t.Fatalf("killed at effect %d, done, cut: %v, %v", n, verbs(p), err)
				}
				again(t, h, s) // the note of the end may be lost: then the ledger still has what went
				got := afterBoot(look(h, s, false)).Tree
				if diff := cmp.Diff(afterBoot(want).Tree, got); diff != "" {
					t.Fatalf("killed at effect %d, done, cut: %s", n, diff)
				}
			}
			t.Logf("%d effects, each with a kill, a run and a power cut", effects)
		})
	}
}
