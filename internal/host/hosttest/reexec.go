package hosttest

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// SlowUnit takes a second to start, so that systemd can be made to execute itself
// meanwhile.
const SlowUnit = "berth-conformance-slow.service"

// unitReexec loses the connection to systemd while a job is under way and while
// nothing is. The runs of units go on, that of a target of the boot among them: it tells
// this run of userspace from another.
func unitReexec(t *testing.T, h host.Host, _ string) {
	define(t, h, map[string]string{SlowUnit: "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/sleep 1\n"})
	reexec := func() {
		t.Helper()
		_, err := h.Run(t.Context(), host.Command{Path: "systemctl", Args: []string{"daemon-reexec"}})
		must(t, err)
	}
	const bootTarget = "sysinit.target"
	boot := state(t, h, bootTarget, "loaded", "active", "active").InvocationID
	started := make(chan error)
	go func() { started <- h.StartUnit(within(t, soon), SlowUnit) }()
	time.Sleep(4 * short)
	reexec()
	must(t, <-started)
	first := state(t, h, SlowUnit, "loaded", "active", "exited")
	reexec()
	if second := state(t, h, SlowUnit, "loaded", "active", "exited"); second.InvocationID != first.InvocationID {
		t.Error("another run")
	}
	must(t, h.DaemonReload(t.Context()))
	if st := state(t, h, bootTarget, "loaded", "active", "active"); boot == "" || st.InvocationID != boot {
		t.Errorf("run %q of %s became %q", boot, bootTarget, st.InvocationID)
	}
	reexec()
	must(t, h.StopUnit(t.Context(), SlowUnit))
	state(t, h, SlowUnit, "loaded", "inactive", "dead")
}
