package provision

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/report"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

func waitOptions(h host.Host, out *bytes.Buffer) WaitOptions {
	return WaitOptions{Host: h, Config: report.ConfigPath, Version: "test", Out: out}
}

// beginning is a machine that does something when it is first watched.
type beginning struct {
	*memory.Host
	do func()
}

func (b beginning) Watch(ctx context.Context, w host.Watched) (<-chan host.Event, error) {
	events, err := b.Host.Watch(ctx, w)
	go b.do()
	return events, err
}

func TestWaitReturnsTheResult(t *testing.T) {
	h := machineOf(`{}`)
	out := &bytes.Buffer{}
	o := waitOptions(beginning{h, func() { // the run ends after the first look, or before: both must do
		d := report.Result{Berth: &report.Details{InstanceID: "vm-1"}}
		d.ExitCode, d.Error, d.Output = "51", "no answer", strings.Repeat("x", 9000)
		if err := report.WriteResult(t.Context(), h, d, false); err != nil {
			t.Error(err)
		}
	}}, out)
	code, err := Wait(t.Context(), o)
	if code != 51 || err != nil || out.Len() > report.Limit {
		t.Errorf("code %d, %d bytes, %v", code, out.Len(), err)
	}
	want := []string{"ProvisionWait Informational Starting", "ProvisionWait Error exit code 51: no answer"}
	if diff := cmp.Diff(want, events(t, h)); diff != "" {
		t.Error(diff)
	}
	s, err := nodeconfigutils.ParseCSEStatus("[stdout]\n" + out.String() + "[stderr]\n")
	if err != nil || s.ExitCode != "51" {
		t.Errorf("status %+v, %v", s, err)
	}
}

func TestWaitAlwaysEnds(t *testing.T) {
	cases := map[string]struct {
		sentinel, result string
		says             string
	}{
		"partial result":   {`{"instanceID":"vm-1"}`, `{"ExitCode":"0","Outp`, "can't be read"},
		"no result":        {``, "", "can't be read"},
		"no exit code":     {``, `{}`, "can't be read"},
		"nothing at all":   {"none", "", "not ended in time"},
		"of another image": {`{"instanceID":"vm-0"}`, `{"ExitCode":"0"}`, "not ended in time"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := machineOf(`{}`)
				if c.sentinel != "none" {
					h.Put(report.SentinelPath, c.sentinel, 0o600)
				}
				if c.result != "" {
					h.Put(report.ResultPath, c.result, 0o600)
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errNoResult)
				defer cancel()
				out := &bytes.Buffer{}
				code, err := Wait(ctx, waitOptions(h, out))
				if code != exitcode.Timeout || err != nil {
					t.Errorf("code %d, %v", code, err)
				}
				d, err := report.Decode(out.Bytes())
				if err != nil || d.ExitCode != "124" || !strings.Contains(d.Error, c.says) || !strings.Contains(d.Error, report.ServiceUnit) {
					t.Errorf("printed %s (%v)", out, err)
				}
			})
		})
	}
}

// TestWaitSaysWhatItCouldNotRead: whether a run has ended may be what nobody can tell.
func TestWaitSaysWhatItCouldNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := machineOf(`{}`)
		h.PutDir(report.SentinelPath)
		out := &bytes.Buffer{}
		code, err := Wait(t.Context(), waitOptions(ticking{h}, out))
		if code != exitcode.Timeout || err != nil {
			t.Errorf("code %d, %v", code, err)
		}
		if d, err := report.Decode(out.Bytes()); err != nil || !strings.Contains(d.Error, "not ended in time: read sentinel: open "+report.SentinelPath+": is a directory") {
			t.Errorf("printed %s (%v)", out, err)
		}
	})
}

func writeResult(t *testing.T, h host.Host, instance, code string) {
	t.Helper()
	d := report.Result{Berth: &report.Details{InstanceID: instance}}
	d.ExitCode = code
	if err := report.WriteResult(t.Context(), h, d, false); err != nil {
		t.Error(err)
	}
}

// TestWaitKnowsTheMachineFirst: a captured image has its origin's id and result
// until cloud-init has looked.
func TestWaitKnowsTheMachineFirst(t *testing.T) {
	h := machineOf(`{}`)
	hasCloudInit(h, "cloud-init.service")
	writeResult(t, h, "vm-1", "0")
	go func() {
		time.Sleep(3 * identifyEvery / 2)
		writeResult(t, h, "vm-2", "51")
		h.Put(bootInstance, "vm-2\n", 0o644)
	}()
	out := &bytes.Buffer{}
	if code, err := Wait(t.Context(), waitOptions(h, out)); code != 51 || err != nil {
		t.Errorf("code %d, %v, printed %s", code, err, out)
	}
}

func hasCloudInit(h *memory.Host, unit string) {
	h.Put("/usr/lib/systemd/system/"+unit, "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/true\n", 0o644)
	h.Program("/usr/bin/true", func(host.Command) host.Output { return host.Output{} })
}

// ticking is a machine whose clock goes with that of the test.
type ticking struct{ *memory.Host }

func (ticking) Now() time.Time { return time.Now() }

// TestWaitForCloudInitEnds: what cloud-init will not do in this boot is not
// waited for until the deadline, with a good result on the disk.
func TestWaitForCloudInitEnds(t *testing.T) {
	start := func(unit string) func(*testing.T, *memory.Host) {
		return func(t *testing.T, h *memory.Host) {
			if err := h.StartUnit(t.Context(), unit); err != nil {
				t.Error(err)
			}
		}
	}
	for name, c := range map[string]struct {
		unit  string // that cloud-init has
		then  func(*testing.T, *memory.Host)
		least time.Duration // that Wait takes
		most  time.Duration
		code  int
	}{
		"none":                       {"", nil, 0, 0, 0},
		"before 24.3":                {"cloud-init.service", start("cloud-init.service"), time.Second, 2 * time.Second, 0},
		"since 24.3":                 {"cloud-init-network.service", start("cloud-init-network.service"), time.Second, 2 * time.Second, 0},
		"the unit after it started":  {"cloud-init.service", start(report.ServiceUnit), time.Second, 2 * time.Second, 0},
		"nothing starts":             {"cloud-init-network.service", nil, identifyBudget, identifyBudget + time.Second, 0},
		"it is on its way, for ever": {"cloud-init.service", func(_ *testing.T, h *memory.Host) { h.Put(cloudInitEnabled, "", 0o644) }, 16 * time.Minute, 16 * time.Minute, 124},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := machineOf(`{}`)
				h.Put("/usr/lib/systemd/system/"+report.ServiceUnit, "[Service]\nType=exec\nExecStart=/usr/bin/true\nRemainAfterExit=yes\n", 0o644)
				if c.unit != "" {
					hasCloudInit(h, c.unit)
				}
				writeResult(t, h, "vm-1", "0")
				if c.then != nil {
					time.AfterFunc(time.Second, func() { c.then(t, h) })
				}
				begun, out := time.Now(), &bytes.Buffer{}
				code, err := Wait(t.Context(), waitOptions(ticking{h}, out))
				if took := time.Since(begun); code != c.code || err != nil || took < c.least || took > c.most {
					t.Errorf("code %d, %v after %s, printed %s", code, err, took, out)
				}
			})
		})
	}
}

// TestWaitLooksWithoutAnEvent: a directory that is removed and made again tells
// nothing any more.
func TestWaitLooksWithoutAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := machineOf(`{}`)
		time.AfterFunc(time.Minute, func() { writeResult(t, h, "vm-1", "0") })
		begun, out := time.Now(), &bytes.Buffer{}
		code, err := Wait(t.Context(), waitOptions(ticking{h}, out))
		if took := time.Since(begun); code != 0 || err != nil || took > time.Minute+lookEvery {
			t.Errorf("code %d, %v after %s, printed %s", code, err, took, out)
		}
	})
}

// TestWaitForTheDocument: cloud-init may still write the document, whose run may take longer
// than one has without it. One that allows less takes nothing of the wait.
func TestWaitForTheDocument(t *testing.T) {
	for timeout, most := range map[string]time.Duration{"3600": 61 * time.Minute, "60": 16 * time.Minute} {
		t.Run(timeout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := machineOf(`{}`)
				if err := h.Remove(report.ConfigPath); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(10*time.Minute, func() { h.Put(report.ConfigPath, `{"version":"v1","cse_timeout":`+timeout+`}`, 0o600) })
				begun, out := time.Now(), &bytes.Buffer{}
				code, err := Wait(t.Context(), waitOptions(ticking{h}, out))
				if took := time.Since(begun); code != exitcode.Timeout || err != nil || took != most {
					t.Errorf("code %d, %v after %s, printed %s", code, err, took, out)
				}
			})
		})
	}
}

func TestWaitShortensAForeignResult(t *testing.T) {
	h := machineOf(`{}`)
	h.Put(report.SentinelPath, "", 0o600)
	h.Put(report.ResultPath, `{"ExitCode":"7","Output":"`+strings.Repeat("é", 5000)+`"}`, 0o600)
	out := &bytes.Buffer{}
	code, err := Wait(t.Context(), waitOptions(h, out))
	if code != 7 || err != nil || out.Len() > report.Limit {
		t.Errorf("code %d, %d bytes, %v", code, out.Len(), err)
	}
}

// TestWaitIsGivenUp: the one who waits goes, provisioning does not.
func TestWaitIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("%w by signal 2", exitcode.ErrInterrupted))
	out := &bytes.Buffer{}
	if code, err := Wait(ctx, waitOptions(machineOf(`{}`), out)); code != exitcode.Timeout || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
	if d, err := report.Decode(out.Bytes()); err != nil || !strings.HasPrefix(d.Error, "the wait was told to stop; provisioning goes on") {
		t.Errorf("printed %s (%v)", out, err)
	}
}
