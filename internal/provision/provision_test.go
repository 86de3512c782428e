package provision

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/report"
)

// fakeContract is a document without a format.
type fakeContract struct{ terms contract.Terms }

func (fakeContract) Kind() contract.Kind { return contract.AKS }
func (fakeContract) Notes() []desired.FieldNote {
	return []desired.FieldNote{{Path: "new_field", Reason: "unknown"}}
}
func (c fakeContract) Terms() contract.Terms { return c.terms }
func (fakeContract) Translate(component.Facts) (*desired.State, error) {
	st := &desired.State{Owner: desired.OwnerAKS, Unhandled: []string{"gpu_config"}}
	st.Add(&desired.Artifact{Name: "kubernetes", Files: []desired.ArtifactFile{{Path: "/opt/bin/kubelet"}}})
	return st, st.Seal()
}

// machineOf is a machine that cloud-init has set up. Its clock is right: a run's
// deadline is one of the real time.
func machineOf(config string) *memory.Host {
	h := memory.New()
	h.Advance(time.Since(h.Now()))
	h.Put("/var/lib/cloud/data/instance-id", "vm-1\n", 0o644)
	h.Put(report.ConfigPath, config, 0o600)
	h.PutDir("/var/log/azure/aks")
	h.Program("/usr/bin/systemctl", func(host.Command) host.Output {
		return host.Output{Stdout: []byte("KernelTimestamp=Sat 2026-11-21 01:27:22 UTC\nUserspaceTimestamp=\nFinishTimestamp=\n")}
	})
	return h
}

func options(h host.Host) Options {
	return Options{
		Host: h, Config: report.ConfigPath, WaitFor: MilestoneRegistered, Command: "berth provision", Version: "test", Program: "berth", Start: h.Now(),
		Decode: func([]byte) (contract.Contract, error) { return fakeContract{}, nil },
		Facts: func(context.Context, host.Host, converge.Observer) (component.Facts, error) {
			return component.Facts{}, nil
		},
		Apply: func(ctx context.Context, _ *desired.State, o converge.Observer) (*converge.Result, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			o(converge.Span{ID: "file:/x", Verb: converge.VerbCreate, Phase: "commit", Start: h.Now(), End: h.Now()})
			return &converge.Result{Plan: &converge.Plan{}, Unverified: []string{"kubernetes"}}, nil
		},
		Await: func(ctx context.Context, _ *desired.State, to Milestone, reached func(Milestone)) error {
			reached(to)
			return ctx.Err()
		},
		Remember: func(context.Context, *desired.State) error { return nil },
	}
}

func result(t *testing.T, h host.FS, p string) report.Result {
	t.Helper()
	b, err := h.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > report.Limit {
		t.Errorf("result has %d bytes", len(b))
	}
	return d
}

func TestProvisionReportsSuccess(t *testing.T) {
	h := machineOf(`{"version":"v1"}`)
	if code := Provision(t.Context(), options(h)); code != 0 {
		t.Fatalf("code %d", code)
	}
	d := result(t, h, report.ResultPath)
	if d.ExitCode != "0" || d.Error != "" || d.KernelStartTime != "Sat 2026-11-21 01:27:22 UTC" {
		t.Errorf("result %+v", d)
	}
	want := &report.Details{
		Version: "test", InstanceID: "vm-1", Code: "OK", Milestone: "registered",
		Unhandled: []string{"gpu_config"}, Unverified: []string{"kubernetes"}, Timeline: report.TimelinePath,
	}
	if diff := cmp.Diff(want, d.Berth); diff != "" {
		t.Error(diff)
	}
	s, err := report.ReadSentinel(h, report.SentinelPath)
	if err != nil || s.InstanceID != "vm-1" || s.ExitCode != "0" {
		t.Errorf("sentinel %+v, %v", s, err)
	}
	for _, p := range []string{report.LogPath, report.ClusterLog, report.TimelinePath, report.AKSLogDir + "/cluster-provision.log"} {
		if _, err := h.Lstat(p); err != nil {
			t.Error(err)
		}
	}
	told := events(t, h)
	if diff := cmp.Diff([]string{"Provision Informational Starting", "Provision Informational Completed", "AKS.CSE.cse_start Informational Completed"}, told[:3]); diff != "" {
		t.Error(diff)
	}
	actions := []string{"File Informational Completed: create file:/x", "Read Informational Completed: read " + report.ConfigPath,
		"Translate Informational Completed: translate the configuration", "Wait Informational Completed: wait for registered"}
	if diff := cmp.Diff(actions, slices.Sorted(slices.Values(told[3:]))); diff != "" {
		t.Error(diff)
	}
}

// TestAsksFirst: what takes long to answer is asked before the run does anything,
// and not at all by a run that keeps a result.
// Programs are read when who waits for the result has it, and what becomes of that
// changes no result.
func TestRemembersLast(t *testing.T) {
	h := machineOf(`{"version":"v1"}`)
	o, called := options(h), false
	o.Remember = func(context.Context, *desired.State) error {
		called = true
		if d := result(t, h, report.ResultPath); d.ExitCode != "0" {
			t.Errorf("result %+v", d)
		}
		if _, err := report.ReadSentinel(h, report.SentinelPath); err != nil {
			t.Error(err)
		}
		return errors.New("the disk is slow")
	}
	if code := Provision(t.Context(), o); code != 0 || !called {
		t.Errorf("code %d, called %t", code, called)
	}
}

func TestAsksFirst(t *testing.T) {
	h := machineOf(`{}`)
	o, did := options(h), []string{}
	o.Boot = true
	o.Ask = func(context.Context) { did = append(did, "ask") }
	o.Decode = func([]byte) (contract.Contract, error) { did = append(did, "decode"); return fakeContract{}, nil }
	for range 2 {
		if code := Provision(t.Context(), o); code != 0 {
			t.Errorf("code %d", code)
		}
	}
	if d := cmp.Diff([]string{"ask", "decode"}, did); d != "" {
		t.Error(d)
	}
}

func TestProvisionReportsEveryFailure(t *testing.T) {
	slow := func(ctx context.Context, _ *desired.State, _ converge.Observer) (*converge.Result, error) {
		<-ctx.Done()
		return &converge.Result{}, &converge.ActionError{ID: "unit:containerd.service", Verb: converge.VerbStart, Err: ctx.Err()}
	}
	failing := func(err error) func(context.Context, *desired.State, converge.Observer) (*converge.Result, error) {
		return func(context.Context, *desired.State, converge.Observer) (*converge.Result, error) {
			return &converge.Result{}, err
		}
	}
	cases := map[string]struct {
		change func(*Options)
		code   int
		says   string
	}{
		"refused by the command line": {func(o *Options) {
			o.Refused = &exitcode.Error{Number: 250, During: "read --nbc-cmd", Err: errors.New("not supported")}
		}, 250, "not supported"},
		"no configuration": {func(o *Options) { o.Config = "/nowhere" }, 240, "/nowhere"},
		"endless document": {func(o *Options) {
			o.Host.(*memory.Host).Put("/etc/long", strings.Repeat(" ", contract.MaxBytes+1), 0o600)
			o.Config = "/etc/long"
		}, 240, "more than 4 MiB"},
		"bad document": {func(o *Options) {
			o.Decode = contract.Decode
		}, 240, "configuration refused"},
		"panic": {func(o *Options) {
			o.Facts = func(context.Context, host.Host, converge.Observer) (component.Facts, error) { panic("oh") }
		}, 240, "panic: oh"},
		"download": {func(o *Options) {
			o.Apply = failing(&converge.ActionError{ID: "artifact:kubernetes", Verb: converge.VerbFetch, Field: "kube_binary_config", Err: errors.New("404")})
		}, 31, "404"},
		"wait": {func(o *Options) {
			o.Await = func(context.Context, *desired.State, Milestone, func(Milestone)) error {
				return &exitcode.Error{Number: 245, During: "wait", Err: errors.New("no node")}
			}
		}, 245, "no node"},
		"timeout": {func(o *Options) { o.Apply = slow; o.Start = time.Now().Add(-time.Hour) }, 124, "cse_timeout"},
	}
	failedStep := map[string]string{"no configuration": "Read", "endless document": "Read", "bad document": "Read", "panic": "Translate", "wait": "Wait"}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := machineOf(`{"version":"v9"}`)
			o := options(h)
			c.change(&o)
			if code := Provision(t.Context(), o); code != c.code {
				t.Errorf("code %d, want %d", code, c.code)
			}
			d := result(t, h, report.ResultPath)
			if d.ExitCode != fmt.Sprint(c.code) || !strings.Contains(d.Error, c.says) {
				t.Errorf("result %s: %s", d.ExitCode, d.Error)
			}
			if state, err := h.Lstat("/var/lib/berth"); err != nil || state.Mode.Perm() != 0o700 {
				t.Errorf("state is open to all: %v, %v", state.Mode, err)
			}
			if d.Berth.Code == "" || d.Berth.Hint == "" || d.Berth.Doing == "" {
				t.Errorf("the result explains nothing: %+v", d.Berth)
			}
			if _, err := h.Lstat(report.SentinelPath); err != nil {
				t.Error(err)
			}
			ending := " Error " + d.Berth.Code + ": " + d.Error
			told := events(t, h)
			if diff := cmp.Diff([]string{"Provision Informational Starting", "Provision" + ending, "AKS.CSE.cse_start" + ending}, told[:3]); diff != "" {
				t.Error(diff)
			}
			if step := failedStep[name]; step != "" && (len(told) < 4 || !strings.HasPrefix(told[3], step+" Error Failed: ")) {
				t.Errorf("the failed step is not first of the actions: %q", told[3:])
			}
		})
	}
}

func TestProvisionReportsASignal(t *testing.T) {
	h := machineOf(`{}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	o := options(h)
	o.Apply = func(ctx context.Context, _ *desired.State, _ converge.Observer) (*converge.Result, error) {
		cancel(fmt.Errorf("%w by signal 15", exitcode.ErrInterrupted))
		<-ctx.Done()
		return &converge.Result{}, ctx.Err()
	}
	if code := Provision(ctx, o); code != exitcode.Interrupted {
		t.Errorf("code %d", code)
	}
	if d := result(t, h, report.ResultPath); !strings.Contains(d.Error, "signal 15") {
		t.Errorf("error %q", d.Error)
	}
}

// TestTimelineOfARunThatDoesNotStop: it shows what was done, and what hangs.
func TestTimelineOfARunThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := machineOf(`{}`)
		o, release := options(h), make(chan struct{})
		o.Apply = func(_ context.Context, _ *desired.State, observe converge.Observer) (*converge.Result, error) {
			done := converge.Span{ID: "file:/x", Verb: converge.VerbCreate, Phase: "commit", Start: h.Now()}
			observe(done)
			done.End = h.Now()
			observe(done)
			observe(converge.Span{ID: "module:x", Verb: converge.VerbLoad, Phase: "commit", Start: h.Now()})
			<-release
			return &converge.Result{}, nil
		}
		if code := Provision(t.Context(), o); code != exitcode.Timeout {
			t.Errorf("code %d", code)
		}
		close(release)
		line, err := report.LoadTimeline(h, report.TimelinePath)
		if err != nil {
			t.Fatal(err)
		}
		got := map[desired.ID]bool{} // whether it ended
		for _, s := range line.Spans {
			got[s.ID] = !s.End.IsZero()
		}
		want := map[desired.ID]bool{desired.ID(report.ConfigPath): true, "the configuration": true, "file:/x": true, "module:x": false}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBootKeepsWhatHasEnded(t *testing.T) {
	cases := map[string]struct {
		instance string
		ended    string // exit code of the earlier run; empty: none
		boot     bool
		code     int
		runs     bool
	}{
		"first boot":                 {"vm-1", "", true, 0, true},
		"reboot":                     {"vm-1", "0", true, 0, false},
		"reboot after a failure":     {"vm-1", "51", true, 51, false},
		"reboot after a kill":        {"vm-1", "137", true, 0, true},
		"captured image":             {"vm-0", "0", true, 0, true},
		"published sentinel":         {"", "0", true, 0, false},
		"an operator asks":           {"vm-1", "0", false, 0, true},
		"an operator asks once more": {"vm-1", "51", false, 0, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := machineOf(`{}`)
			if c.ended != "" {
				d := report.Result{Berth: &report.Details{InstanceID: c.instance}}
				d.ExitCode = c.ended
				if err := report.WriteResult(t.Context(), h, d, false); err != nil {
					t.Fatal(err)
				}
			}
			before := h.Tree(report.AKSLogDir, report.SentinelDir)
			o, ran := options(h), false
			o.Boot = c.boot
			apply := o.Apply
			o.Apply = func(ctx context.Context, st *desired.State, ob converge.Observer) (*converge.Result, error) {
				ran = true
				if _, err := h.Lstat(report.SentinelPath); err == nil {
					t.Error("the sentinel stands while a run goes on")
				}
				return apply(ctx, st, ob)
			}
			if code := Provision(t.Context(), o); code != c.code || ran != c.runs {
				t.Errorf("code %d, ran %v", code, ran)
			}
			if diff := cmp.Diff(before, h.Tree(report.AKSLogDir, report.SentinelDir)); !c.runs && diff != "" {
				t.Errorf("changed:\n%s", diff)
			}
			if c.ended != "" && c.runs && len(archives(t, h)) != 1 {
				t.Errorf("archives %v", archives(t, h))
			}
		})
	}
}

func archives(t *testing.T, h host.FS) []string {
	t.Helper()
	names, err := h.ReadDir(report.AKSLogDir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range names {
		if strings.HasPrefix(n, "provision.2") {
			out = append(out, n)
		}
	}
	return out
}

func TestImageBuildHasItsOwnSentinel(t *testing.T) {
	h := machineOf(`{"pre_provision_only": true}`)
	h.Put(report.SentinelPath, `{"instanceID":"vm-1","exitCode":"240"}`, 0o600) // of a configuration that was refused
	o := options(h)
	o.Decode = func([]byte) (contract.Contract, error) {
		return fakeContract{contract.Terms{ImageBuild: true}}, nil
	}
	o.Await = nil // nobody waits for a node
	if code := Provision(t.Context(), o); code != 0 {
		t.Fatalf("code %d", code)
	}
	if _, err := h.Lstat(report.SentinelPath); err == nil {
		t.Error("provision.complete exists")
	}
	if d := result(t, h, report.ResultPath); d.Berth.Milestone != "image-built" {
		t.Errorf("milestone %q", d.Berth.Milestone)
	}
	last, err := LastResult(h)
	if err != nil || !last.Ended || !last.ImageBuild {
		t.Errorf("last %+v, %v", last, err)
	}
}

// TestFullDisk: the disk takes nothing, memory does; provision-wait finds the
// result there, and the console has it.
func TestFullDisk(t *testing.T) {
	h := machineOf(`{}`)
	said := map[string]string{}
	for _, p := range []string{"/dev/console", "/dev/kmsg"} {
		h.ValueFunc(p, "", func(_, written string) (string, error) {
			said[p] = written
			return "", nil
		})
	}
	if code := Provision(t.Context(), options(fullDisk{h})); code != 0 {
		t.Errorf("code %d", code)
	}
	for p, level := range map[string]string{"/dev/console": "", "/dev/kmsg": "<15>"} {
		if !strings.HasPrefix(said[p], level+`berth: {"ExitCode":"0"`) || !strings.HasSuffix(said[p], "\n") {
			t.Errorf("%s: %q", p, said[p])
		}
	}
	out := &bytes.Buffer{}
	if code, err := Wait(t.Context(), waitOptions(h, out)); code != 0 || err != nil || !strings.Contains(out.String(), "vm-1") {
		t.Errorf("code %d, %v, printed %s", code, err, out)
	}
}

// fullDisk takes new files only in memory.
type fullDisk struct{ host.Host }

func (d fullDisk) Create(p string) (host.File, error) {
	if strings.HasPrefix(p, "/run/") {
		return d.Host.Create(p)
	}
	return nil, &fs.PathError{Op: "create", Path: p, Err: syscall.ENOSPC}
}

func TestResultHoldsOnlyStrings(t *testing.T) {
	h := machineOf(`{}`)
	Provision(t.Context(), options(h))
	b, err := h.ReadFile(report.ResultPath)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for k, v := range fields {
		if _, ok := v.(string); !ok && k != "Berth" && k != "BootDatapoints" {
			t.Errorf("%s is %T", k, v)
		}
	}
}
