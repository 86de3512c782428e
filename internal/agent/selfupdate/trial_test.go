package selfupdate

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

// whileAsleep is a machine on which something happens while somebody waits.
type whileAsleep struct {
	*memory.Host
	do func() error
}

func (w whileAsleep) Sleep(ctx context.Context, d time.Duration) error {
	return errors.Join(w.Host.Sleep(ctx, d), w.do())
}

// Whether this is the agent on trial is a matter of which run of the unit it is. Clocks
// jump.
func TestOnTrialByNoClock(t *testing.T) {
	unit := &Parts{Field: "f", Unit: oldText + "# new\n"} // the program is the same
	for name, jump := range map[string]time.Duration{"back": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			before := s.process(noRestart{s.h}, oldProgram)
			if _, err := before.Update(t.Context(), unit, "sum", hasTurn); !errors.Is(err, syscall.EBUSY) {
				t.Fatal(err)
			}
			s.h.Advance(jump)
			if on, err := s.process(s.h, oldProgram).OnTrial(t.Context()); on || err != nil {
				t.Error("the agent that was there before would speak for the new one", err)
			}
			if err := s.h.RestartUnit(t.Context(), config.Unit); err != nil {
				t.Fatal(err)
			}
			if on, err := s.process(s.h, oldProgram).OnTrial(t.Context()); !on || err != nil {
				t.Error("the new agent does not know that it is on trial", err)
			}
		})
	}
}

// noRestart is a machine whose service manager refuses to restart the agent.
type noRestart struct{ *memory.Host }

func (n noRestart) RestartUnit(ctx context.Context, name string) error {
	if name == config.Unit {
		return syscall.EBUSY
	}
	return n.Host.RestartUnit(ctx, name)
}

// unreadable is a machine with a file that opens and can't be read.
type unreadable struct {
	*memory.Host
	path string
}

func (u unreadable) Open(p string) (host.ReadFile, error) {
	f, err := u.Host.Open(p)
	if err == nil && p == u.path {
		return badSector{f}, nil
	}
	return f, err
}

type badSector struct{ host.ReadFile }

func (badSector) ReadAt([]byte, int64) (int, error) { return 0, syscall.EIO }

// A program that can't be read is not one that is somebody else's.
func TestUnreadableProgram(t *testing.T) {
	s, p := newSite(t), berth(t)
	h := unreadable{s.h, p.Program.copyPath()}
	if ends, err := s.process(h, oldProgram).Update(t.Context(), p, "sum", hasTurn); ends || !errors.Is(err, syscall.EIO) {
		t.Fatal(ends, err)
	}
	if len(s.events) > 0 {
		t.Error(s.events)
	}
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); !ends || err != nil {
		t.Error("it is not tried again", ends, err)
	}
}

// An agent that never proves itself, of an update that is cut at any effect: it is
// started once, and once more where it was not in place as a whole.
func TestUpdateThatFailsIsCutAnywhere(t *testing.T) {
	p := berth(t)
	whole := newSite(t)
	counting := effect.Inject(whole.h, nil)
	if _, err := whole.process(counting, oldProgram).Update(t.Context(), p, "sum", hasTurn); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= counting.Count(); n += step {
		s := newSite(t)
		in := effect.Inject(s.h, effect.Plan{{At: n, Kind: effect.StopAfter}})
		if _, err := s.process(in, oldProgram).Update(t.Context(), p, "sum", hasTurn); in.Hit() == nil {
			t.Fatalf("no fault at effect %d: %v", n, err)
		}
		s.h.Kill()
		note, err := trial.Load(s.h)
		if err != nil {
			t.Fatal(err)
		}
		most := 2
		if note != nil && note.Waiting {
			most = 1
		}
		if err := s.h.RestartUnit(t.Context(), config.Unit); err != nil {
			t.Fatal(err) // systemd does so with a service that ended
		}
		starts, err := s.neverProves(p)
		if _, fell := errors.AsType[*FellBackError](err); !fell || starts == 0 || starts > most {
			t.Fatalf("after effect %d (%v): started %d times, %v", n, in.Hit(), starts, err)
		}
		s.finished(oldText, oldProgram)
	}
}

// neverProves has the machine go on with an agent that is of no use until none is tried
// any more, and counts the times that the new one ran.
func (s *site) neverProves(p *Parts) (starts int, err error) {
	for range 6 {
		program := s.program()
		if program != oldProgram && strings.Contains(s.text(unitFile), newProgram) {
			starts++
			if good, err := TimeIsOver(s.Context(), s.h); good || err != nil {
				return starts, err
			}
			if _, err := engineOf(s.h, []byte("x"), oldProgram, 0).Revert(s.Context()); err != nil {
				return starts, err
			}
			continue
		}
		if _, err = s.process(s.h, program).Update(s.Context(), p, "sum", hasTurn); err != nil {
			return starts, err
		}
	}
	return starts, errors.New("it does not come to an end")
}
