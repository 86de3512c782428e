package faults_test

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/internal/host/effect"
)

// Stopped dead after any effect and run again, the machine is the same, with the same unit
// states and the same restarts. Before an effect is after the one before it.
func TestKilledAnywhere(t *testing.T) {
	eachOfAll(t, func(t *testing.T, s scenario) {
		want, kills := s.undisturbed(t), 0
		for stop := range s.stops(t) {
			h := furnished(stop.machine)
			h.Kill()
			s.again(t, h)
			if d := diff(want.outcome, look(h)); d != "" {
				t.Fatalf("killed at effect %v: %s", stop.Effect, d)
			}
			kills++
		}
		t.Logf("%d effects, %d kills", len(want.effects), kills)
	})
}

// A run that follows a kill may be killed, too.
func TestKilledTwice(t *testing.T) {
	eachOfAll(t, func(t *testing.T, s scenario) {
		want, rng, second := s.undisturbed(t), rand.New(rand.NewPCG(11, 3)), 0
		kinds := []effect.Kind{effect.StopBefore, effect.StopAfter}
		for range doubleFaults {
			n := 1 + rng.IntN(len(want.effects))
			m := 1 + rng.IntN(len(want.effects))
			h := s.machine()
			s.disturb(t, h, effect.Plan{{At: n, Kind: kinds[rng.IntN(2)]}})
			h.Kill()
			in := effect.Inject(h, effect.Plan{{At: m, Kind: kinds[rng.IntN(2)]}})
			if _, err := s.run(h, in); in.Hit() != nil {
				second++
			} else if err != nil {
				t.Fatalf("killed at effect %d, then: %v", n, err)
			}
			h.Kill()
			s.again(t, h)
			if d := diff(want.outcome, look(h)); d != "" {
				t.Fatalf("killed at effect %v, then at the %dth: %s", want.effects[n-1], m, d)
			}
		}
		t.Logf("%d kills at random effects, %d of the runs that followed killed at a random effect", doubleFaults, second)
	})
}
