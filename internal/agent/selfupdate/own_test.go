package selfupdate

import (
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
)

// spoil changes the agent's own files, and mend has an agent see to them.
func (s *site) spoil(program string) {
	s.Helper()
	s.h.Overwrite(unitFile, "[Service]\nExecStart=/bin/false\n")
	for _, p := range []string{program, dropInDir + "/" + notifyingName, "/etc/systemd/system/multi-user.target.wants/" + config.Unit} {
		_ = s.h.Remove(p)
	}
	if err := s.h.DaemonReload(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func (s *site) mend(u *Updater) {
	s.Helper()
	st, err := u.Own()
	if err != nil || st == nil {
		s.Fatal(st, err)
	}
	if _, err := u.Repair(s.Context(), st, converge.Scope{IDs: OwnIDs(st)}); err != nil {
		s.Fatal(err)
	}
}

// An agent that has proved itself keeps its link, unit and drop-ins.
func TestOwnFiles(t *testing.T) {
	s, p := newSite(t), berth(t)
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	if st, err := s.process(s.h, s.program()).Own(); st != nil || err != nil {
		t.Error("what is on trial is kept up", err)
	}
	u := s.process(s.h, s.program())
	if err := u.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.h.ForgetJobs()
	theirs := dropInDir + "/99-theirs.conf"
	s.h.Put(theirs, "[Service]\nNice=1\n", 0o644)
	s.spoil(newProgram)
	s.mend(u)
	s.finished(newText, p.Program.copyPath())
	if s.text(dropInDir+"/"+notifyingName) != notifying || s.text(theirs) == "" {
		t.Error("drop-ins")
	}
	if _, err := s.h.Readlink("/etc/systemd/system/multi-user.target.wants/" + config.Unit); err != nil {
		t.Error(err)
	}
	if len(s.h.Jobs()) > 0 {
		t.Error(s.h.Jobs())
	}
	if ends, err := u.Update(t.Context(), p, "sum", hasTurn); ends || err != nil {
		t.Error("it is another agent", ends, err)
	}
}

// So does one that bootstrap made the service; one that somebody else made it does not.
func TestOwnFilesAfterSetup(t *testing.T) {
	s := newClaimedSite(t)
	u := s.process(s.h, oldProgram)
	s.spoil("/nothing")
	s.mend(u)
	s.finished(oldText, oldProgram)
	if len(s.h.Jobs()) > 0 {
		t.Error(s.h.Jobs())
	}
	other := s.process(s.h, "/usr/bin/other") // bootstrap with that was another text
	if st, err := other.Own(); st != nil || err != nil {
		t.Error("the unit of another program is kept up", err)
	}
	if st, err := newSite(t).process(newSite(t).h, oldProgram).Own(); st != nil || err != nil {
		t.Error("somebody else's unit is kept up", err)
	}
}

// A document's agent comes after a repair as it came before.
func TestUpdateAfterRepair(t *testing.T) {
	s, p := newClaimedSite(t), berth(t)
	s.spoil("/nothing")
	s.mend(s.process(s.h, oldProgram))
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	if err := errors.Join(s.process(s.h, s.program()).Prove(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.finished(newText, p.Program.copyPath())
}
