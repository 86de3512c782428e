package selfupdate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
)

// newClaimedSite is a machine whose agent is a program that berth put there and that
// bootstrap made the service's.
func newClaimedSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.h.Put("/src/berth", s.text(oldProgram), 0o644)
	if err := s.h.Remove(oldProgram); err != nil {
		t.Fatal(err)
	}
	program := &desired.Artifact{Name: "agent", URLs: []string{"file:///src/berth"}, Files: []desired.ArtifactFile{{Path: oldProgram, Mode: 0o755}}}
	unit := &desired.Unit{Name: config.Unit, Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{unitFile}}
	unit.After = []desired.ID{program.ID(), desired.FileID(unitFile)}
	st := &desired.State{Owner: desired.OwnerBerth}
	st.Add(program, &desired.File{Path: unitFile, Content: desired.Text(oldText), Mode: 0o644, Life: desired.Managed}, unit)
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	if _, err := engineOf(s.h, nil, "", 0).Apply(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	s.h.ForgetJobs()
	return s
}

// newSiteInPlace is a machine whose agent is a file at the path that documents name.
func newSiteInPlace(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.h.Put(newProgram, s.text(oldProgram), 0o755)
	s.h.Put(unitFile, inPlaceText, 0o644)
	if err := errors.Join(s.h.DaemonReload(t.Context()), s.h.RestartUnit(t.Context(), config.Unit)); err != nil {
		t.Fatal(err)
	}
	s.h.ForgetJobs()
	return s
}

var inPlaceText = strings.Replace(newText, "[Install]", "Nice=1\n[Install]", 1)

func (s *site) text(p string) string {
	s.Helper()
	text, err := s.h.ReadFile(p)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// A program that berth put on the machine is there until another one has proved itself.
func TestClaimedProgramIsTheWayBack(t *testing.T) {
	for name, p := range map[string]*Parts{
		"program":  berth(t),
		"its path": {Field: "f", Unit: oldText + "# new\n", Program: &Program{Path: oldProgram, Content: berth(t).Program.Content}},
		"unit":     {Field: "f", Unit: oldText + "# new\n"},
		"drop-in":  {Field: "f", DropIns: map[string]string{"x.conf": "[Service]\nNice=1\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newClaimedSite(t)
			was := s.text(oldProgram)
			if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); err != nil || !ends {
				t.Fatal(ends, err)
			}
			way, _, _ := strings.Cut(strings.SplitAfter(s.text("/run/systemd/system/berth-revert.service"), "ExecStart=")[1], " ")
			if s.text(way) != was {
				t.Error("the way back calls another program: " + way)
			}
			if done, err := engineOf(s.h, []byte("x"), oldProgram, 0).Revert(t.Context()); done == "" || err != nil {
				t.Fatal(done, err)
			}
			s.finished(oldText, s.program())
			if s.text(s.program()) != was {
				t.Error("the program before is not back")
			}
			if ends, err := s.process(s.h, s.program()).Update(t.Context(), p, "another sum", hasTurn); err != nil || !ends {
				t.Fatal(ends, err)
			}
			if on, err := s.process(s.h, s.program()).OnTrial(t.Context()); !on || err != nil {
				t.Error("the new agent does not know that it is on trial", err)
			}
		})
	}
}

func TestClaimedProgramStaysWhereAnotherIsKeptOut(t *testing.T) {
	for name, p := range map[string]*Parts{
		"program": partsOf("foreign"),
		"drop-in": {Field: "f", DropIns: map[string]string{"x.conf": "[Service]\nExecStart=\nExecStart=/usr/bin/other\n"}},
		"nothing": {Field: "f", DropIns: map[string]string{"x.conf": "[Service]\nExecStart=\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newClaimedSite(t)
			if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); ends || err != nil {
				t.Fatal(ends, err)
			}
			s.finished(oldText, oldProgram)
			s.text(oldProgram)
		})
	}
}

// A document that brings the program by the path of the claimed one comes after one
// that only had the unit.
func TestClaimedProgramGivesItsPath(t *testing.T) {
	s := newClaimedSite(t)
	unit := &Parts{Field: "f", Unit: oldText + "# new\n"}
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), unit, "sum", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	if err := s.process(s.h, oldProgram).Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.finished(unit.Unit, oldProgram)
	p := &Parts{Field: "f", Unit: unit.Unit, Program: &Program{Path: oldProgram, Content: berth(t).Program.Content}}
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum two", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	if err := s.process(s.h, s.program()).Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.finished(unit.Unit, p.Program.copyPath())
}

// What the engine kept of the version in force is lost: the machine shows it.
func TestUpdateWithoutAKeptVersion(t *testing.T) {
	for name, third := range map[string]*Parts{
		"program": partsOf(string(berth(t).Program.Content) + "\n"),
		"unit":    {Field: "f", Unit: inPlaceText},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newSite(t), berth(t)
			if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); err != nil || !ends {
				t.Fatal(ends, err)
			}
			if err := s.process(s.h, s.program()).Prove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := trial.Forget(s.h, desired.OwnerBerth); err != nil {
				t.Fatal(err)
			}
			running := s.program()
			if ends, err := s.process(s.h, running).Update(t.Context(), third, "sum three", hasTurn); err != nil || !ends {
				t.Fatal(ends, err)
			}
			s.text(running)
			if done, err := engineOf(s.h, []byte("x"), oldProgram, 0).Revert(t.Context()); done == "" || err != nil {
				t.Fatal(done, err)
			}
			s.finished(newText, running)
			s.text(running)
		})
	}
}

// A power cut that comes each time counts as failed the second time.
func TestTrialsCutByReboots(t *testing.T) {
	s, p := newSite(t), berth(t)
	for n := range 2 {
		if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); err != nil || !ends {
			t.Fatal(n, ends, err)
		}
		s.h.Advance(time.Second)
		s.h.PowerCut(uint64(n))
		s.h.Boot()
		if _, err := engineOf(s.h, []byte("x"), oldProgram, 0).Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn)
	if _, fell := errors.AsType[*FellBackError](err); !fell {
		t.Error("it is tried at each boot", err)
	}
}

// A drop-in goes with the document that named it.
func TestDropInsGo(t *testing.T) {
	s := newSite(t)
	two := &Parts{Field: "f", DropIns: map[string]string{"x.conf": "[Service]\nNice=1\n", "y.conf": "[Service]\nNice=2\n"}}
	one := &Parts{Field: "f", DropIns: map[string]string{"y.conf": "[Service]\nNice=2\n"}}
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), two, "1", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	if err := s.process(s.h, oldProgram).Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), one, "2", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	if _, err := s.h.Lstat(dropInDir + "/x.conf"); err == nil {
		t.Error("a drop-in is left")
	}
	s.text(dropInDir + "/y.conf")
}

func TestCalled(t *testing.T) {
	for program, want := range map[string]string{
		copyPath(newProgram, "k"):          newProgram,
		copyPath("/agent", "k"):            "/agent",
		oldProgram:                         oldProgram,
		"/opt/bin/.berth-agent/deeper/a/b": "/opt/bin/.berth-agent/deeper/a/b",
	} {
		if got := Called(program); got != want {
			t.Errorf("%s is called %s, want %s", program, got, want)
		}
	}
}
