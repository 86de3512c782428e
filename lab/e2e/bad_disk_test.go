package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// full mounts a file system without free space over a directory of the node
// until the test ends. One page is what the directory itself may need.
func (m *badMachine) full(t *testing.T, dir string) {
	t.Helper()
	run(t, m.node, "mkdir", "-p", dir)
	run(t, m.node, "mount", "-t", "tmpfs", "-o", "size=4k,mode=0755", "tmpfs", dir)
	t.Cleanup(func() { run(t, m.node, "umount", dir) })
	m.exec(t, "sh", "-c", "cat /dev/zero >"+dir+"/fill")
}

// fullDisks have no space where something has to be written.
func fullDisks(t *testing.T, m *badMachine) {
	good := m.document(t)
	for _, dir := range []string{"/etc/kubernetes", "/var/lib/berth", "/var/lib/kubelet", "/etc/default"} {
		t.Run(dir, func(t *testing.T) {
			m.full(t, dir)
			m.refuse(t, badCase{name: dir, config: good, code: 248, says: []string{dir, "no space left"}, hint: "df -h"})
		})
	}
	t.Run("result", func(t *testing.T) {
		m.full(t, "/var/log/azure")
		heard := m.kernelHeard(t, 240)
		m.refuse(t, badCase{name: "result", config: replaced(t, good, `"version": "v1"`, `"version": "v8"`), code: 240, field: "version",
			result: "/run/berth/provision.json"})
		if m.kernelHeard(t, 240) == heard {
			t.Error("the kernel's log has no result")
		}
	})
	t.Run("result and memory", func(t *testing.T) {
		m.full(t, "/var/log/azure")
		m.full(t, "/run/berth")
		heard := m.kernelHeard(t, 240)
		if r := m.provision(t, badCase{name: "everywhere", config: replaced(t, good, `"version": "v1"`, `"version": "v7"`)}); r.Code != 240 {
			t.Errorf("exit code %d", r.Code)
		}
		if m.kernelHeard(t, 240) == heard {
			t.Error("the kernel's log has no result")
		}
	})
	run(t, m.node, "rmdir", "/etc/kubernetes")
}

// kernelHeard is the last result with a code in the kernel's log, where results
// go when no disk takes them; each holds the time of its run. A node has no
// console of its own.
func (m *badMachine) kernelHeard(t *testing.T, code int) string {
	t.Helper()
	r := m.exec(t, "dmesg")
	_, last, _ := cutLast(string(r.Stdout), fmt.Sprintf(`berth: {"ExitCode":"%d"`, code))
	line, _, _ := strings.Cut(last, "\n")
	return line
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
