package machine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestCgroupOfInit has a cgroup in which PID 1 is, and one of that name in another namespace.
func TestCgroupOfInit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"it is there": {map[string]string{"proc/1/cgroup": "0::/init.scope\n", "sys/fs/cgroup/init.scope/cgroup.procs": "1\n"}, "sys/fs/cgroup/init.scope/cgroup.procs"},
		"beside version 1": {map[string]string{"proc/1/cgroup": "2:cpu:/\n0::/init.scope\n", "sys/fs/cgroup/init.scope/cgroup.procs": "1\n",
			"sys/fs/cgroup/unified/init.scope/cgroup.procs": "1\n"}, "sys/fs/cgroup/unified/init.scope/cgroup.procs"},
		"another's":     {map[string]string{"proc/1/cgroup": "0::/init.scope\n", "sys/fs/cgroup/init.scope/cgroup.procs": "0\n"}, ""},
		"not mounted":   {map[string]string{"proc/1/cgroup": "0::/init.scope\n"}, ""},
		"version 1":     {map[string]string{"proc/1/cgroup": "2:cpu:/\n", "sys/fs/cgroup/cgroup.procs": "1\n"}, ""},
		"no such /proc": {nil, ""},
	} {
		root := t.TempDir()
		for at, text := range c.files {
			at = filepath.Join(root, at)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		if f, err := cgroupOfInit(root); err == nil {
			got = strings.TrimPrefix(f.Name(), root+"/")
			f.Close()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// moves counts what is written, and fails after the last of them.
type moves struct {
	last  int
	texts []string
	each  chan struct{}
}

func (m *moves) WriteString(s string) (int, error) {
	m.texts = append(m.texts, s)
	m.each <- struct{}{}
	if len(m.texts) == m.last {
		return 0, errors.New("no such process")
	}
	return len(s), nil
}

func TestMoveInit(t *testing.T) {
	for name, last := range map[string]int{"to the job's end": 0, "to an error": 3} {
		m, over, ended := &moves{last: last, each: make(chan struct{})}, make(chan struct{}), make(chan struct{})
		go func() { defer close(ended); moveInit(m, over) }()
		for range 3 {
			<-m.each
		}
		if last == 0 {
			close(over)
		}
		for open := true; open; {
			select {
			case <-m.each: // one that was on its way
			case <-ended:
				open = false
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: it goes on", name)
			}
		}
		if len(m.texts) < 3 || last != 0 && len(m.texts) != last || slices.ContainsFunc(m.texts, func(s string) bool { return s != "1" }) {
			t.Errorf("%s: %q", name, m.texts)
		}
	}
}
