package e2e

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestBadInputs gives one machine input after input that must fail, each with
// its code, field and hint, and leave the machine as it was; at the end the good
// one, which proves that nothing stayed behind.
func TestBadInputs(t *testing.T) {
	parallelLong(t)
	l := sharedLab(t)
	m := addBadMachine(t, l, "bad")
	nobody := m.waitForNobody(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *badMachine)
	}{
		{"document", badDocuments},
		{"path", badPaths},
		{"user", badUser},
		{"server", badServers},
		{"token", badTokens},
		{"artifact", badArtifacts},
		{"disk", fullDisks},
		{"two runs", twoRuns},
		{"signal", interrupted},
		{"nobody provisions", nobody},
		{"kubelet", badKubelet},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, m) })
	}
}

func addBadMachine(t *testing.T, l *lab.Lab, name string) *badMachine {
	t.Helper()
	m := &badMachine{l, addNode(t, l, lab.NodeConfig{Name: name})}
	if _, err := m.node.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := l.AwaitSigner(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	return m
}

// each runs cases one after another.
func (m *badMachine) each(t *testing.T, cases []badCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { m.refuse(t, c) })
	}
}
