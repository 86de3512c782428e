package faults_test

import (
	"math/rand/v2"
	"testing"
)

// Whatever the schedule, the outcome is the same.
func TestParallelSchedules(t *testing.T) {
	each(t, func(t *testing.T, s scenario) {
		want := s.undisturbed(t)
		for seed := range uint64(schedules) {
			h := s.machine()
			e := engine(h, rand.New(rand.NewPCG(seed, 2)).IntN, 8)
			if _, err := e.Apply(tctx, s.config.state(h)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			s.converged(t, h)
			if d := diff(want.outcome, look(h)); d != "" {
				t.Fatalf("seed %d: %s", seed, d)
			}
		}
		t.Logf("%d schedules with 8 workers", schedules)
	})
}
