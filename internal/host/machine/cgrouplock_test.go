package machine

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProcsFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"version 2":       {"0::/init.scope\n", []string{"/sys/fs/cgroup/unified/init.scope/cgroup.procs", "/sys/fs/cgroup/init.scope/cgroup.procs"}},
		"both":            {"9:name=systemd:/a\n1:cpu:/b\n0::/c d\n", []string{"/sys/fs/cgroup/unified/c d/cgroup.procs", "/sys/fs/cgroup/c d/cgroup.procs"}},
		"version 1":       {"9:name=systemd:/init.scope\n1:cpu:/\n", nil},
		"another's mount": {"0::/../..\n", []string{"/sys/fs/cgroup.procs", "/sys/cgroup.procs"}},
		"empty":           {"", nil},
	} {
		if d := cmp.Diff(c.want, procsFiles([]byte(c.text))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", name, d)
		}
	}
}

func TestHoldsInit(t *testing.T) {
	for text, want := range map[string]bool{"1\n": true, "17\n1\n": true, "": false, "0\n": false, "11\n21\n": false} {
		if got := holdsInit([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestKeepCgroupLockMovesNobody runs on the machine of the test: as root it writes, else
// it ends at once.
func TestKeepCgroupLockMovesNobody(t *testing.T) {
	before, err := os.ReadFile("/proc/1/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); keepCgroupLock(over) }()
	time.Sleep(3 * lockAgain)
	close(over)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on after the job's end")
	}
	after, err := os.ReadFile("/proc/1/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Errorf("PID 1 was moved from\n%sto\n%s", before, after)
	}
}
