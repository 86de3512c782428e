package converge_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
)

// oddInstances are names that systemd reads as instances of w@.service:
// systemd-escape --unescape --instance gives what stands in the comment.
var oddInstances = []string{
	"w@.a.service", // .a
	"w@a@.service", // a@
	"w@a.b.service",
}

// An instance whose name reads like that of a template lives as any other: it
// starts, is started again where the template changes, and stops at the end.
func TestOddInstances(t *testing.T) {
	for _, name := range oddInstances {
		t.Run(name, func(t *testing.T) {
			at := func(version string) *desired.State {
				return sealed(t, managed("/etc/systemd/system/w@.service", "# "+version+"\n"+service),
					&desired.Unit{Name: name, Enablement: desired.Enabled, Activation: desired.Started})
			}
			h := newMachine()
			h.Put("/usr/bin/w", "w", 0o755)
			runs(t, h, at("1"))
			h.Flush()
			if got := livesOf(h, name); got != "start" {
				t.Errorf("first: %q", got)
			}
			runs(t, h, at("2"))
			h.Flush()
			if got := livesOf(h, name); got != "start restart" {
				t.Errorf("the template changed: %q", got)
			}
			converged(t, h, at("2"))
			runs(t, h, sealed(t))
			if st, err := h.Unit(tctx, name); err != nil || st.ActiveState != "inactive" {
				t.Errorf("at the end: %+v, %v", st, err)
			}
		})
	}
}

// livesOf is what a unit went through, in order.
func livesOf(h *machine, name string) string {
	var out []string
	for _, j := range h.Jobs() {
		if verb, ok := strings.CutSuffix(j.String(), " "+name); ok {
			out = append(out, verb)
		}
	}
	return strings.Join(out, " ")
}
