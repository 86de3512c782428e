package e2e

import (
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
		m.refuse(t, badCase{name: "result", config: replaced(t, good, `"version": "v1"`, `"version": "v8"`), code: 240, field: "version",
			result: "/run/berth/provision.json"})
		m.console(t, `"ExitCode":"240"`)
	})
	t.Run("result and memory", func(t *testing.T) {
		m.full(t, "/var/log/azure")
		m.full(t, "/run/berth")
		if r := m.provision(t, badCase{name: "everywhere", config: replaced(t, good, `"version": "v1"`, `"version": "v7"`)}); r.Code != 240 {
			t.Errorf("exit code %d", r.Code)
		}
		m.console(t, `"v7"`)
	})
	run(t, m.node, "rmdir", "/etc/kubernetes")
}

// console wants the result on the node's console.
func (m *badMachine) console(t *testing.T, text string) {
	t.Helper()
	out, err := m.node.Console()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "berth: {") && strings.Contains(strings.ReplaceAll(line, `\"`, `"`), text) {
			return
		}
	}
	t.Errorf("the console does not say %s:\n%s", text, out[max(0, len(out)-4000):])
}
