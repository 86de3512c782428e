package provision

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestAUnitsFailureIsToldInItsWords(t *testing.T) {
	h := memory.New()
	h.Program("/usr/bin/journalctl", func(c host.Command) host.Output {
		if !slices.Contains(c.Args, "kubelet.service") {
			return host.Output{ExitCode: 1}
		}
		return host.Output{Stdout: []byte("starting\nunknown flag: --x, token abcdef.0123456789abcdef\n")}
	})
	failed := &converge.UnitError{Unit: "kubelet.service", Err: &host.JobError{Unit: "kubelet.service", Job: "start", Result: "failed"}}
	err := WithUnitLog(t.Context(), h, &converge.ActionError{ID: "unit:kubelet.service", Verb: "start", Err: failed})
	text := Explain(err).Cause
	if !strings.Contains(text, "its last lines: starting; unknown flag: --x, token REDACTED#") || strings.Contains(text, "0123456789abcdef") {
		t.Errorf("cause %q", text)
	}
	if f := Explain(err); f.Code.Number != exitcode.Kubelet {
		t.Errorf("code %d", f.Code.Number)
	}
	other := errors.New("no")
	if got := WithUnitLog(t.Context(), h, other); !errors.Is(got, other) {
		t.Errorf("%v became %v", other, got)
	}
}
