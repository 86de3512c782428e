package e2e

import (
	"fmt"
	"strings"
	"testing"
)

const (
	largeFiles = 200
	largeUnits = 50
)

// largeDocument is nearly what a Secret may hold.
func largeDocument() string {
	var files, units strings.Builder
	for i := range largeFiles {
		files.WriteString(oscFile(fmt.Sprintf("/etc/large/%03d", i), strings.Repeat(fmt.Sprintf("file %03d ", i), 550)))
	}
	for i := range largeUnits {
		units.WriteString(oscUnit(fmt.Sprintf("large-%02d.service", i), helloUnit, fmt.Sprintf("/etc/large/%03d", i)))
	}
	return oscDocument(files.String(), units.String())
}

// large: 1 MB with 200 files and 50 units is in force as a whole, also where the agent is
// killed on the way, and is gone as a whole with the document that follows.
func (m *agentMachine) large(t *testing.T) {
	m.applied(t, m.ask(t, largeDocument()))
	m.hasLarge(t, largeFiles, largeUnits)
	m.applied(t, m.ask(t, hello("without")))
	m.hasLarge(t, 0, 0)
	sum := m.ask(t, largeDocument())
	if err := m.node.Run(within(t, rebootTime), "sh", "-c", "until [ -e /etc/large/000 ]; do sleep 0.01; done; systemctl kill -s KILL "+agentUnit); err != nil {
		t.Fatal(err)
	}
	m.applied(t, sum)
	m.hasLarge(t, largeFiles, largeUnits)
	m.applied(t, m.ask(t, hello("done")))
	m.hasLarge(t, 0, 0)
}

// hasLarge: so many files of the large document, whole, and so many units, that run.
func (m *agentMachine) hasLarge(t *testing.T, files, units int) {
	t.Helper()
	const count = `ls /etc/large 2>/dev/null | wc -l; cd /etc/large 2>/dev/null && for f in *; do [ "$(cut -c1-8 $f)" = "file $f" ] && [ $(stat -c %s $f) = 4950 ] && echo; done | wc -l || echo 0
systemctl list-units --no-legend --plain --state=active 'large-*' | wc -l; ls -d /etc/systemd/system/large-* /etc/systemd/system/*/large-* 2>/dev/null | wc -l`
	if got, want := strings.Fields(run(t, m.node, "sh", "-c", count)), fmt.Sprint([]int{files, files, units, 2 * units}); fmt.Sprint(got) != want {
		t.Errorf("files, whole files, units that run, definitions and links: %v, want %s", got, want)
	}
}
