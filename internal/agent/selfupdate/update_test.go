package selfupdate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	oldProgram = "/usr/local/bin/berth"
	newProgram = "/opt/bin/gardener-node-agent"
	oldText    = "[Service]\nExecStart=" + oldProgram + " agent\n[Install]\nWantedBy=multi-user.target\n"
	newText    = "[Service]\nExecStart=" + newProgram + "\n[Install]\nWantedBy=multi-user.target\n"
)

// built are programs that say by their build that they are berth.
var built = sync.OnceValues(func() (map[string]string, error) {
	dir, err := os.MkdirTemp("", "berth")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	main := filepath.Join(dir, "cmd", "berth")
	err = errors.Join(os.MkdirAll(main, 0o755),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module github.com/berth-dev/berth\n"), 0o600),
		os.WriteFile(filepath.Join(main, "main.go"), []byte("package main\n\nvar version string\n\nfunc main() { print(version) }\n"), 0o600))
	out := map[string]string{}
	for _, v := range []string{"one", "two"} {
		c := exec.Command("go", "build", "-ldflags=-s -w -X main.version="+v, "-o", filepath.Join(dir, v), "./cmd/berth")
		c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		said, failed := c.CombinedOutput()
		text, missing := os.ReadFile(filepath.Join(dir, v))
		out[v] = string(text)
		if failed != nil || missing != nil {
			err = errors.Join(err, failed, missing, errors.New(string(said)))
		}
	}
	return out, err
})

// site is a machine with the agent as a service.
type site struct {
	*testing.T
	h      *memory.Host
	allow  bool
	events []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	h := memory.New()
	h.PutDir("/run/berth")
	h.Put(oldProgram, programs["one"], 0o755)
	h.Put(unitFile, oldText, 0o644)
	if err := errors.Join(h.DaemonReload(t.Context()), h.StartUnit(t.Context(), config.Unit)); err != nil {
		t.Fatal(err)
	}
	h.ForgetJobs()
	return &site{T: t, h: h}
}

func (s *site) Normal(reason, message string)  { s.events = append(s.events, reason+" "+message) }
func (s *site) Warning(reason, message string) { s.Normal(reason, message) }

// copier fetches what is in a file of the machine.
type copier struct{}

func (copier) Stage(_ context.Context, h host.Host, a *desired.Artifact) (converge.Staged, error) {
	from := a.Addresses()[0]
	text, err := h.ReadFile(strings.TrimPrefix(strings.TrimPrefix(from, "file://"), "oci:/"))
	if err == nil {
		err = host.PrepareFunc(h, a.Files[0].Path, host.Attributes{Mode: 0o755}, func(to host.File) error {
			_, err := to.Write(text)
			return err
		})
	}
	return converge.Staged{URL: from}, err
}

func (copier) Version(context.Context, host.Host, string) (string, error) { return "", nil }

func engineOf(h host.Host, contract []byte, program string, within time.Duration) *converge.Engine {
	o := converge.Options{Host: h, Providers: converge.Providers{Fetcher: copier{}}, Command: "test", Workers: 1, TakeOver: true}
	if contract != nil {
		o.Trial = &converge.Trial{
			Contract: trial.Contract{Document: contract}, Program: program, Within: within,
			State: func(_ context.Context, c *trial.Contract) (*desired.State, error) {
				if !IsVersion(c.Document) {
					return &desired.State{Owner: desired.OwnerOSC}, nil
				}
				return State(h, c.Document)
			},
			Stands:       func(context.Context, *desired.State) trial.Standing { return trial.Standing{} },
			Await:        func(context.Context, *desired.State, trial.Standing) (string, error) { return "", nil },
			LastLogLines: func(context.Context, string) string { return "" },
		}
	}
	return converge.New(o)
}

// hasTurn lets an update go on.
func hasTurn() error { return nil }

// process is the agent as it is started now.
func (s *site) process(on host.Host, program string) *Updater {
	s.h.Advance(time.Second)
	return New(Options{Host: on, Ledger: &ledger.Reader{}, Program: program, Setup: s.setup, Within: time.Minute, Allow: s.allow, Events: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Engine: func(c []byte, p string, within time.Duration) *converge.Engine { return engineOf(on, c, p, within) }})
}

// setup is what makes a program the service.
func (s *site) setup(program string) (*desired.State, error) {
	unit := &desired.Unit{Name: config.Unit, Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{unitFile}}
	unit.After = []desired.ID{desired.FileID(unitFile)}
	st := &desired.State{Owner: desired.OwnerBerth}
	st.Add(&desired.File{Path: unitFile, Content: desired.Text(strings.Replace(oldText, oldProgram, program, 1)), Mode: 0o644, Life: desired.Managed}, unit)
	return st, st.Seal()
}

// program is what the agent's unit runs.
func (s *site) program() string {
	text, err := s.h.ReadFile(unitFile)
	if err != nil {
		s.Fatal(err)
	}
	p := called(string(text), nil)
	if to, err := s.h.Readlink(p); err == nil {
		p = to
	}
	return p
}

func partsOf(program string) *Parts {
	return &Parts{Field: "spec.units[0]", Unit: newText, Program: &Program{Path: newProgram, Content: []byte(program)}}
}

func berth(t *testing.T) *Parts {
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return partsOf(programs["two"])
}

// onTrial: the machine waits for the new agent's word, and can go back without it.
func (s *site) onTrial() {
	s.Helper()
	n, err := trial.Load(s.h)
	if err != nil || n == nil || !n.Waiting || n.Owner != desired.OwnerBerth {
		s.Fatalf("note %+v %v", n, err)
	}
	text, err := s.h.ReadFile("/run/systemd/system/berth-revert.service")
	if err != nil || !strings.Contains(string(text), oldProgram+" node revert") {
		s.Fatalf("%s %v", text, err)
	}
	if st := s.h.Units()["berth-revert.timer"]; st.ActiveState != "active" {
		s.Fatalf("timer %+v", st)
	}
}

// finished: nothing is on trial, and the agent is that of a unit's text.
func (s *site) finished(unit, program string) {
	s.Helper()
	if n, err := trial.Load(s.h); n != nil || err != nil {
		s.Errorf("note %+v %v", n, err)
	}
	if text, err := s.h.ReadFile(unitFile); err != nil || string(text) != unit {
		s.Errorf("unit %q %v", text, err)
	}
	if got := s.program(); got != program {
		s.Errorf("program %s, want %s", got, program)
	}
	if st := s.h.Units()[config.Unit]; st.ActiveState != "active" || st.NeedDaemonReload {
		s.Errorf("agent %+v", st)
	}
}

func TestUpdate(t *testing.T) {
	s, p := newSite(t), berth(t)
	ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn)
	if err != nil || !ends {
		t.Fatal(ends, err)
	}
	s.onTrial()
	u := s.process(s.h, s.program())
	if on, err := u.OnTrial(t.Context()); !on || err != nil {
		t.Fatal(on, err)
	}
	if on, err := s.process(s.h, oldProgram).OnTrial(t.Context()); on || err != nil {
		t.Error("the old program would speak for the new one", err)
	}
	if err := u.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.finished(newText, p.Program.copyPath())
	for range 2 {
		if ends, err := u.Update(t.Context(), p, "sum", hasTurn); ends || err != nil {
			t.Error(ends, err)
		}
	}
	if text, err := s.h.ReadFile(dropInDir + "/" + notifyingName); err != nil || string(text) != notifying {
		t.Errorf("%q %v", text, err)
	}
	if !InForce(s.h, newText) || InForce(s.h, oldText) {
		t.Error("what is in force is not known")
	}
}

// An agent that apply put on the machine out of a document stays when it leaves itself
// out of that document.
func TestClaim(t *testing.T) {
	s := newSite(t)
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := partsOf(programs["one"])
	other := &desired.File{Path: "/etc/other", Content: desired.Text("x"), Mode: 0o644, Life: desired.Managed}
	apply := func(more ...desired.Resource) {
		t.Helper()
		st := &desired.State{Owner: desired.OwnerOSC}
		st.Add(append(more, other)...)
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		if _, err := converge.New(converge.Options{Host: s.h, Command: "test", Workers: 1}).Apply(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	apply(&desired.File{Path: newProgram, Content: desired.Text(programs["one"]), Mode: 0o755, Life: desired.Managed},
		&desired.File{Path: unitFile, Content: desired.Text(newText), Mode: 0o600, Life: desired.Managed},
		&desired.Unit{Name: config.Unit, Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{unitFile, newProgram}})
	s.h.ForgetJobs()
	if err := s.process(s.h, newProgram).Claim(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	apply()
	s.finished(newText, p.Program.copyPath())
	if text, err := s.h.ReadFile(s.program()); err != nil || string(text) != programs["one"] {
		t.Error("the program is not what it was", err)
	}
	if len(s.h.Jobs()) > 0 {
		t.Error(s.h.Jobs())
	}
}

// The kernel knows a program by its real path: /opt may be a link.
func TestUpdateBelowALink(t *testing.T) {
	s, p := newSite(t), berth(t)
	s.h.PutDir("/var/opt")
	s.h.PutLink("/var/opt", "/opt", 0)
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	s.h.Put("/var"+newProgram, programs["one"], 0o755)
	s.h.Put(unitFile, strings.Replace(newText, "[Install]", "Nice=1\n[Install]", 1), 0o644)
	if ends, err := s.process(s.h, "/var"+newProgram).Update(t.Context(), p, "sum", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	u := s.process(s.h, "/var"+p.Program.copyPath())
	if on, err := u.OnTrial(t.Context()); !on || err != nil {
		t.Fatal(on, err)
	}
	if done, err := engineOf(s.h, []byte("x"), oldProgram, 0).Revert(t.Context()); done == "" || err != nil {
		t.Fatal(done, err)
	}
	text, err := s.h.ReadFile(s.program())
	if err != nil || string(text) != programs["one"] {
		t.Error("the program before is not back", err)
	}
}

// After any number of updates there is one version to go back to.
func TestFallBackAfterUpdates(t *testing.T) {
	s, first := newSite(t), berth(t)
	second := partsOf(string(first.Program.Content) + "\n")
	for _, p := range []*Parts{first, second} {
		u := s.process(s.h, s.program())
		if ends, err := u.Update(t.Context(), p, p.Program.copyPath(), hasTurn); err != nil || !ends {
			t.Fatal(ends, err)
		}
		if err := s.process(s.h, s.program()).Prove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	third := partsOf(string(second.Program.Content) + "\n")
	if ends, err := s.process(s.h, s.program()).Update(t.Context(), third, "sum", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	if done, err := engineOf(s.h, []byte("x"), oldProgram, 0).Revert(t.Context()); done == "" || err != nil {
		t.Fatal(done, err)
	}
	s.finished(newText, second.Program.copyPath())
	if names, err := s.h.ReadDir("/opt/bin/.berth-agent"); err != nil || len(names) != 1 {
		t.Error(names, err)
	}
}

// The time is over: systemd's timer has the old program go back.
func TestFallBack(t *testing.T) {
	s, p := newSite(t), berth(t)
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); err != nil || !ends {
		t.Fatal(ends, err)
	}
	if done, err := engineOf(s.h, []byte("x"), oldProgram, 0).Revert(t.Context()); done == "" || err != nil {
		t.Fatal(done, err)
	}
	s.finished(oldText, oldProgram)
	for range 2 {
		ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn)
		said, ok := errors.AsType[*exitcode.Error](err)
		if _, fell := errors.AsType[*FellBackError](err); ends || !fell || !ok || said.Remedy == "" || !strings.HasPrefix(err.Error(), "spec.units[0]: ") || said.Number == 0 {
			t.Fatal(ends, err)
		}
	}
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "another sum", hasTurn); err != nil || !ends {
		t.Error(ends, err)
	}
}

// A restart on the way, of the machine or of userspace alone, takes the new agent back at
// boot. That says nothing of the agent: it is tried once more, and not a third time.
func TestUpdateIsCutByABoot(t *testing.T) {
	for name, reboot := range map[string]func(*memory.Host){"machine": (*memory.Host).Boot, "userspace": (*memory.Host).SoftReboot} {
		t.Run(name, func(t *testing.T) {
			s, p := newSite(t), berth(t)
			for range 2 {
				if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); err != nil || !ends {
					t.Fatal(ends, err)
				}
				s.onTrial()
				reboot(s.h)
				if on, err := s.process(s.h, s.program()).OnTrial(t.Context()); on || err != nil {
					t.Error("it is on trial after a boot", err)
				}
				if _, err := engineOf(s.h, []byte("x"), oldProgram, 0).Restore(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(s.h.DaemonReload(t.Context()), s.h.RestartUnit(t.Context(), config.Unit)); err != nil {
					t.Fatal(err) // a boot starts it after the way back
				}
				s.finished(oldText, oldProgram)
			}
			_, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn)
			if _, fell := errors.AsType[*FellBackError](err); !fell {
				t.Error(err)
			}
		})
	}
}

func TestAnotherProgramIsKeptOut(t *testing.T) {
	for name, p := range map[string]*Parts{
		"program": partsOf("foreign"),
		"unit":    {Field: "spec.units[0]", Unit: strings.Replace(newText, newProgram, "/usr/bin/other", 1)},
		"drop-in": {Field: "spec.units[0]", DropIns: map[string]string{"x.conf": "[Service]\nExecStart=\nExecStart=/usr/bin/other\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			for range 2 {
				if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); ends || err != nil {
					t.Fatal(ends, err)
				}
			}
			s.finished(oldText, oldProgram)
			if len(s.h.Jobs()) > 0 || len(s.events) != 1 || !strings.Contains(s.events[0], "spec.units[0]") {
				t.Error(s.h.Jobs(), s.events)
			}
			if _, err := s.h.Lstat(copyPath(newProgram, "x")); err == nil {
				t.Error("a copy is left")
			}
			s.allow = true
			s.h.Put("/usr/bin/other", "foreign", 0o755)
			if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); !ends || err != nil {
				t.Fatal(ends, err)
			}
			s.onTrial()
			for _, meanwhile := range []func(context.Context, string) error{s.h.StopUnit, s.h.RestartUnit} {
				during := whileAsleep{s.h, func() error { return meanwhile(t.Context(), config.Unit) }}
				if stays, err := Stays(t.Context(), during); stays || err != nil {
					t.Error("it did not stay up", err)
				}
			}
			if err := s.h.StartUnit(t.Context(), config.Unit); err != nil {
				t.Fatal(err)
			}
			s.h.Advance(-time.Hour) // no clock tells how long it has been up
			if stays, err := Stays(t.Context(), s.h); !stays || err != nil {
				t.Error(stays, err)
			}
			if err := s.h.StopUnit(t.Context(), config.Unit); err != nil {
				t.Fatal(err)
			}
			if stays, err := Stays(t.Context(), s.h); stays || err != nil {
				t.Error("it is not up any more", err)
			}
		})
	}
}

// What runs already is taken over from its new path, and nothing is started anew.
func TestTheSameProgramElsewhere(t *testing.T) {
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.h.Put(newProgram, programs["one"], 0o755)
	s.h.Put(unitFile, newText, 0o644)
	s.h.Put("/a.b/c:v1", programs["one"], 0o644)
	if err := s.h.DaemonReload(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &Parts{Field: "f", Program: &Program{Path: newProgram, Image: "a.b/c:v1", Member: "/agent"}}
	for range 2 {
		if ends, err := s.process(s.h, newProgram).Update(t.Context(), p, "sum", hasTurn); ends || err != nil {
			t.Fatal(ends, err)
		}
	}
	s.finished(newText, p.Program.copyPath())
	if len(s.h.Jobs()) > 0 {
		t.Error(s.h.Jobs())
	}
}

// settle has the machine go on as it does after a fault: systemd starts what the unit
// names, and that agent first has its document.
func (s *site) settle(p *Parts) error {
	for range 4 {
		u := s.process(s.h, s.program())
		on, err := u.OnTrial(s.Context())
		if err == nil && on {
			err = u.Prove(s.Context())
		}
		if err != nil {
			return err
		}
		empty := &desired.State{Owner: desired.OwnerOSC}
		if err := empty.Seal(); err != nil {
			return err
		}
		if _, err := engineOf(s.h, []byte("document"), oldProgram, 0).Apply(s.Context(), empty); err != nil {
			return err
		}
		ends, err := u.Update(s.Context(), p, "sum", hasTurn)
		if err != nil || !ends {
			return err
		}
	}
	return errors.New("it does not come to an end")
}

// Where it is not ready, the new agent is fetched and nothing of it is in place: the one
// that runs goes on, and with the next try the new one is started.
func TestUpdateThatIsNotReady(t *testing.T) {
	p := berth(t)
	s := newSite(t)
	late := errors.New("not now")
	ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", func() error { return late })
	if ends || !errors.Is(err, late) || s.text(unitFile) != oldText || len(s.h.Jobs()) > 0 {
		t.Fatalf("ends %v, %v, %q, %v", ends, err, s.text(unitFile), s.h.Jobs())
	}
	if m, err := load(s.h); m != (record{}) || err != nil {
		t.Fatalf("it counts as tried: %+v, %v", m, err)
	}
	if n, err := trial.Load(s.h); n != nil || err != nil {
		t.Fatalf("on trial %v, %v", n, err)
	}
	if ends, err := s.process(s.h, oldProgram).Update(t.Context(), p, "sum", hasTurn); !ends || err != nil {
		t.Fatalf("ends %v, %v", ends, err)
	}
	if s.text(unitFile) != newText {
		t.Error(s.text(unitFile))
	}
}

// Killed at any effect, or without power, the machine comes to the agent of the document.
func TestUpdateIsCutAnywhere(t *testing.T) {
	for name, c := range map[string]struct {
		site          func(*testing.T) *site
		program, unit string
	}{
		"somebody else's program": {newSite, oldProgram, oldText},
		"claimed program":         {newClaimedSite, oldProgram, oldText},
		"program in place":        {newSiteInPlace, newProgram, inPlaceText},
	} {
		t.Run(name, func(t *testing.T) { cutAnywhere(t, c.site, c.program, c.unit) })
	}
}

func cutAnywhere(t *testing.T, site func(*testing.T) *site, program, unit string) {
	p := berth(t)
	s := site(t)
	counting := effect.Inject(s.h, nil)
	if _, err := s.process(counting, program).Update(t.Context(), p, "sum", hasTurn); err != nil {
		t.Fatal(err)
	}
	for _, power := range []bool{false, true} {
		for n := 1; n <= counting.Count(); n += step {
			s := site(t)
			was := s.text(program)
			in := effect.Inject(s.h, effect.Plan{{At: n, Kind: effect.StopAfter}})
			if _, err := s.process(in, program).Update(t.Context(), p, "sum", hasTurn); in.Hit() == nil {
				t.Fatalf("no fault at effect %d: %v", n, err)
			}
			s.h.Kill()
			if !power {
				if err := s.h.RestartUnit(t.Context(), config.Unit); err != nil {
					t.Fatal(err) // systemd does so with a service that ended
				}
			}
			if power {
				s.h.PowerCut(uint64(n))
				s.h.Boot()
				if _, err := engineOf(s.h, []byte("x"), program, 0).Restore(t.Context()); err != nil {
					t.Fatalf("restore after effect %d: %v", n, err)
				}
				if err := errors.Join(s.h.DaemonReload(t.Context()), s.h.RestartUnit(t.Context(), config.Unit)); err != nil {
					t.Fatal(err) // a boot starts it after the way back
				}
				if s.text(unitFile) != unit || s.text(s.program()) != was {
					t.Fatalf("booted after effect %d (%v) with %s %q", n, in.Hit(), s.program(), s.text(unitFile))
				}
			}
			if err := s.settle(p); err != nil {
				t.Fatalf("power %v, after effect %d (%v): %v", power, n, in.Hit(), err)
			}
			if s.finished(newText, p.Program.copyPath()); t.Failed() || s.text(s.program()) == was {
				t.Fatalf("power %v, after effect %d (%v)", power, n, in.Hit())
			}
		}
	}
	t.Logf("%d effects", counting.Count())
}
