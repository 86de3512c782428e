package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestHandWrittenMachine proves the emulated machine: own kernel, cgroup v2.
func TestHandWrittenMachine(t *testing.T) {
	l := sharedLab(t)
	start := time.Now()
	v, err := l.AddVM(within(t, 3*time.Minute), lab.VMConfig{Name: "vm", UserData: handWritten(t, l, "10.99.0.70"), WithoutBerth: true, IP: addr(t, "10.99.0.70")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logMachine(t, v)
		}
		if err := v.Remove(within(t, time.Minute)); err != nil {
			t.Errorf("remove machine: %v", err)
		}
	})
	if _, err := l.WaitNodeReady(within(t, 4*time.Minute), "vm"); err != nil {
		t.Fatalf("%v; serial log %s", err, v.SerialLog())
	}
	t.Logf("Ready %.1f s after the machine was made", time.Since(start).Seconds())
	if out, err := v.Output(within(t, time.Minute), "stat", "-f", "-c", "%T", "/sys/fs/cgroup"); err != nil || out != "cgroup2fs" {
		t.Errorf("cgroup: %q %v", out, err)
	}
}

// logMachine says what the machine was at.
func logMachine(t *testing.T, v *lab.VM) {
	serial, _ := os.ReadFile(v.SerialLog())
	t.Logf("serial console:\n%s", serial[max(0, len(serial)-3000):])
	for _, cmd := range []string{"systemctl --failed --no-pager; systemctl list-jobs --no-pager", "journalctl --no-pager -n 80 -u kubelet -u containerd -u cloud-final"} {
		out, err := v.Output(within(t, 30*time.Second), "sh", "-c", cmd)
		t.Logf("%s: %v\n%s", cmd, err, out)
	}
}
