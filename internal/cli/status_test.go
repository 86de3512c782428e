package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/report"
)

// TestStatusOfARunThatGoesOn: status and timeline tell of it, and of what was
// before it.
func TestStatusOfARunThatGoesOn(t *testing.T) {
	h := memory.New()
	h.PutDir("/run/berth")
	h.Put("/run/berth/provision.progress", `{"command":"berth provision","pid":7,"start":"2026-11-21T01:02:03Z","doing":"wait for ready"}`, 0o600)
	unlock, err := h.Lock(t.Context(), "/run/berth/provision.lock", "berth provision (pid 7)")
	if err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := invoke(h, "berth", "status")
	if !strings.Contains(stdout, "provisioning: goes on since ") || !strings.Contains(stdout, "(berth provision, pid 7): wait for ready\n") {
		t.Error(stdout)
	}
	if _, stdout, _ = invoke(h, "berth", "status", "-ojson"); !strings.Contains(stdout, `"doing": "wait for ready"`) {
		t.Error(stdout)
	}
	d := report.Result{Berth: &report.Details{Code: "ERR_KUBELET_START_FAIL"}}
	d.ExitCode = "34"
	if err := report.WriteResult(t.Context(), h, d, false); err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ = invoke(h, "berth", "status"); !strings.Contains(stdout, "the run before: failed with ERR_KUBELET_START_FAIL (34)") {
		t.Error(stdout)
	}
	if code, _, stderr := invoke(h, "berth", "timeline"); code != exitcode.Failed || !strings.Contains(stderr, "provisioning goes on since ") {
		t.Error(stderr)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ = invoke(h, "berth", "status"); !strings.Contains(stdout, "provisioning: failed with ERR_KUBELET_START_FAIL (34)") {
		t.Error(stdout)
	}
}

// TestStatusOfAnApplication: what a killed command left is not taken for one that
// goes on, whoever holds the lock now. timeline tells of it, too.
func TestStatusOfAnApplication(t *testing.T) {
	h := memory.New()
	h.PutDir("/run/berth")
	h.Put("/run/berth/apply.progress", `{"command":"berth apply","pid":7,"start":"2026-11-21T01:02:03Z","doing":"restart unit:kubelet.service"}`, 0o600)
	for holder, want := range map[string]bool{"": false, "berth apply (pid 8)": false, "berth provision (pid 7)": false, "berth apply (pid 7)": true} {
		unlock := func() error { return nil }
		if holder != "" {
			var err error
			if unlock, err = h.Lock(t.Context(), "/run/berth/lock", holder); err != nil {
				t.Fatal(err)
			}
		}
		_, stdout, _ := invoke(h, "berth", "status")
		const goesOn = " (berth apply, pid 7): restart unit:kubelet.service"
		if got := strings.Contains(stdout, "applying: goes on since ") && strings.Contains(stdout, goesOn+"\n"); got != want {
			t.Errorf("held by %q: %s", holder, stdout)
		}
		_, _, stderr := invoke(h, "berth", "timeline")
		if got := strings.Contains(stderr, "applying goes on since ") && strings.Contains(stderr, goesOn+"; the timeline is that of the run before\n"); got != want {
			t.Errorf("timeline, held by %q: %s", holder, stderr)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTimelineCutOff: what can't be read is named.
func TestTimelineCutOff(t *testing.T) {
	h := memory.New()
	h.PutDir("/var/lib/berth")
	h.Put(report.TimelinePath, `{"command":`, 0o600)
	code, _, stderr := invoke(h, "berth", "timeline")
	if code != exitcode.Failed || !strings.Contains(stderr, report.TimelinePath) {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestStateDirectoryRebuilt: a node without a timeline was provisioned all the same.
func TestStateDirectoryRebuilt(t *testing.T) {
	h := memory.New()
	d := report.Result{Berth: &report.Details{Milestone: "ready"}}
	d.ExitCode = "0"
	if err := report.WriteResult(t.Context(), h, d, false); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := invoke(h, "berth", "timeline")
	if code != exitcode.Failed || stdout != "" || !strings.Contains(stderr, report.TimelinePath) || !strings.Contains(stderr, "done, reached ready") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if _, stdout, _ = invoke(h, "berth", "status"); !strings.Contains(stdout, "provisioning: done, reached ready") {
		t.Error(stdout)
	}
}

// TestInterruptedCommandSaysWhy: whatever the error of the moment was.
func TestInterruptedCommandSaysWhy(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exitcode.ErrInterrupted)
	for _, command := range []string{"plan", "apply"} {
		code, stderr := invokeIn(ctx, memory.New(), "berth", command, "-f", sample)
		if code != exitcode.CommandInterrupted || !strings.Contains(stderr, "told to stop") {
			t.Errorf("%s: code %d: %s", command, code, stderr)
		}
	}
}

// TestApplyInTime: --timeout ends an apply, and the error names it.
func TestApplyInTime(t *testing.T) {
	code, _, stderr := invoke(memory.New(), "berth", "apply", "-f", sample, "--timeout", "1ns")
	if code != exitcode.Failed || !strings.Contains(stderr, "--timeout 1ns is over") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if code, _, stderr = invoke(memory.New(), "berth", "apply", "-f", sample, "--timeout", "-1s"); code != exitcode.Failed || !strings.Contains(stderr, "negative") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestStatusOfADrain: a node that berth has cordoned is told of, with what ends that.
func TestStatusOfADrain(t *testing.T) {
	h := memory.New()
	h.Put("/var/lib/berth/drained.json", `{"node":"n1","broken":true}`, 0o600)
	if _, stdout, _ := invoke(h, "berth", "status"); !strings.Contains(stdout, "drained: berth cordoned node n1 for another kubelet; it takes no pods until") || !strings.Contains(stdout, "kubectl uncordon n1") {
		t.Error(stdout)
	}
	h.Put("/var/lib/berth/trial.json", `{"owner":"node","waiting":true}`, 0o600)
	if _, stdout, _ := invoke(h, "berth", "status"); !strings.Contains(stdout, "drained: node n1 takes pods again when the change is confirmed or taken back\n") {
		t.Error(stdout)
	}
	if _, stdout, _ := invoke(h, "berth", "status", "-ojson"); !strings.Contains(stdout, `"broken": true`) {
		t.Error(stdout)
	}
}

// A note of a trial that somebody damaged is told, and is no reason to tell nothing else.
// A boot ends it, and so does the time of a person who had to confirm it.
func TestStatusOfADamagedTrial(t *testing.T) {
	for _, verb := range []string{"restore", "revert"} {
		h := memory.New()
		n := &trial.Note{Owner: desired.OwnerAKS, Boot: ledger.Boot{Kernel: "another"}}
		if err := trial.Arm(h, n, "/opt/berth", nil); err != nil {
			t.Fatal(err)
		}
		h.Overwrite("/var/lib/berth/trial.json", `{"own`)
		code, stdout, stderr := invoke(h, "berth", "status")
		if code != 0 || !strings.Contains(stdout, "on trial: nobody knows what (read /var/lib/berth/trial.json: ") || !strings.Contains(stdout, "kubelet.service") {
			t.Errorf("code %d: %s%s", code, stdout, stderr)
		}
		if _, stdout, _ = invoke(h, "berth", "status", "-ojson"); !strings.Contains(stdout, `"trialProblem": "read /var/lib/berth/trial.json: `) {
			t.Error(stdout)
		}
		code, stdout, stderr = invoke(h, "berth", "node", verb)
		if code != 0 || !strings.Contains(stdout+stderr, "a change was on trial, and nothing is taken back: read /var/lib/berth/trial.json: ") {
			t.Errorf("%s: code %d: %s%s", verb, code, stdout, stderr)
		}
		for _, p := range []string{"/var/lib/berth/trial.json", "/etc/systemd/system/" + trial.RestoreUnit} {
			if _, err := h.Lstat(p); err == nil {
				t.Errorf("%s: %s is left", verb, p)
			}
		}
	}
}

// The agent applies as soon as it starts: at boot the way back comes first.
func TestWayBackComesBeforeTheAgent(t *testing.T) {
	if first := (&parts{host: memory.New()}).trial().First; !slices.Contains(first, config.Unit) || !slices.Contains(first, swap.Unit) {
		t.Errorf("%q", first)
	}
}
