package faults_test

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-dev/berth/internal/host/effect"
)

// Stopped dead before or after any effect and run again, the machine is the
// same, with the same unit states and the same restarts.
func TestKilledAnywhere(t *testing.T) {
	eachOfAll(t, func(t *testing.T, s scenario) {
		want, kills := s.undisturbed(t), 0
		for n := 1; n <= len(want.effects); n += stride {
			for _, kind := range killsAt(n) {
				h := s.machine()
				s.disturb(t, h, effect.Plan{{At: n, Kind: kind}})
				h.Kill()
				s.again(t, h)
				if d := diff(want.outcome, look(h)); d != "" {
					t.Fatalf("killed (%v) at effect %v: %s", kind, want.effects[n-1], d)
				}
				kills++
			}
		}
		t.Logf("%d effects, %d kills", len(want.effects), kills)
	})
}

// killsAt are the kills at an effect. Dead before an effect is dead after the
// one before it but for the state of the injector, so the short mode alternates.
func killsAt(n int) []effect.Kind {
	both := []effect.Kind{effect.StopBefore, effect.StopAfter}
	if !thorough {
		return both[n%2 : n%2+1]
	}
	return both
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
