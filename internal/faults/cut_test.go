package faults_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// After a power cut at any effect, whatever of the un-synced survives, nothing
// that starts at boot finds a half-made node, and a run makes the machine what
// an undisturbed run makes of it. Cuts that leave the same machine count as one.
func TestPowerCutAnywhere(t *testing.T) {
	eachOfAll(t, func(t *testing.T, s scenario) {
		want, cuts, left := s.undisturbed(t), 0, machines{}
		for stop := range s.stops(t) {
			for _, seed := range cutsAt(stop.N) {
				cuts++
				h := furnished(stop.machine)
				h.PowerCut(seed)
				if left.has(h) {
					continue
				}
				h.Boot()
				if failed := slices.IndexFunc(jobs(h), func(j string) bool { return strings.HasSuffix(j, ")") }); failed >= 0 {
					t.Fatalf("cut at effect %v, seed %d: at boot %v", stop.Effect, seed, jobs(h)[failed])
				}
				s.again(t, h)
				if d := diff(want.afterBoot(), look(h).afterBoot()); d != "" {
					t.Fatalf("cut at effect %v, seed %d: %s", stop.Effect, seed, d)
				}
			}
		}
		t.Logf("%d effects, %d power cuts, %d machines", len(want.effects), cuts, len(left))
	})
}

// machines are those that were met, by digest.
type machines map[uint64]bool

// has says whether one was met, and notes it.
func (m machines) has(h *memory.Host) bool {
	d := h.Digest()
	was := m[d]
	m[d] = true
	return was
}

// The same holds where a run that fails in stage came between.
func TestDoneIsDurableAfterFailure(t *testing.T) {
	eachOfAll(t, func(t *testing.T, s scenario) {
		want, rng := s.undisturbed(t), rand.New(rand.NewPCG(13, 5))
		for range doubleFaults {
			n := 1 + rng.IntN(len(want.effects))
			h := s.machine()
			s.disturb(t, h, effect.Plan{{At: n, Kind: effect.StopAfter}})
			h.Kill()
			failing := engineWith(h, func(o *converge.Options) { o.Prober = prober{errUnreachable} })
			if _, err := failing.Apply(tctx, checked(s.config.state(h))); !errors.Is(err, errUnreachable) {
				t.Fatalf("killed at effect %d, then without a cluster: %v", n, err)
			}
			s.again(t, h)
			if d := diff(want.outcome, look(h)); d != "" {
				t.Fatalf("killed at effect %d, failed, run again: %s", n, d)
			}
			h.PowerCut(memory.LoseAll)
			h.Boot()
			if got := s.plan(t, h); len(got) > 0 {
				t.Fatalf("killed at effect %d, failed, run again, cut: then there is %v", n, got)
			}
		}
		t.Logf("%d kills at random effects, each with a failure, a run, a power cut and a boot", doubleFaults)
	})
}

// checked is a state with a check that is made each time.
func checked(st *desired.State) *desired.State {
	out := &desired.State{Owner: st.Owner, Resources: slices.Clone(st.Resources)}
	out.Add(&desired.Check{Name: "always", Timeout: time.Second})
	check(out.Seal())
	return out
}

// cutsAt are the choices of what survives a cut: nothing, all names without
// their content, and one at random, another at each effect.
func cutsAt(n int) []uint64 {
	seeds := []uint64{memory.LoseAll, memory.NamesOnly, uint64(n) + 100}
	if !thorough {
		return seeds[n%3 : n%3+1]
	}
	return seeds
}

// What a run reports as done is durable, also where it only found it in place
// because the run before was cut off: a power cut right after it loses nothing,
// and the machine that boots has nothing to do.
func TestDoneIsDurable(t *testing.T) {
	eachOfAll(t, func(t *testing.T, s scenario) {
		want := s.undisturbed(t)
		for n := 0; n <= len(want.effects); n += stride {
			h := s.machine()
			if n > 0 {
				s.disturb(t, h, effect.Plan{{At: n, Kind: effect.StopAfter}})
				h.Kill()
			}
			s.again(t, h)
			h.PowerCut(memory.LoseAll)
			h.Boot()
			if got := s.plan(t, h); len(got) > 0 {
				t.Fatalf("killed at effect %d, run again, cut: then there is %v", n, got)
			}
			s.again(t, h) // what a run dropped whose end got lost is dropped from the ledger now
			got := look(h).afterBoot()
			if d := diff(want.afterBoot(), got); d != "" {
				t.Fatalf("killed at effect %d, run again, cut: %s", n, d)
			}
		}
		t.Logf("%d effects, %d times a kill, a run, a power cut and a boot; and once without the kill", len(want.effects), len(want.effects)/stride)
	})
}
