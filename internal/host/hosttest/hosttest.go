// Package hosttest is the conformance suite of host.Host: what the engine relies
// on, checked against every implementation.
package hosttest

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/host"
)

// Options say what an implementation can do. A case that it can't do is not
// registered; no case skips.
type Options struct {
	// Dir is an existing directory of the host that only the test uses; it is
	// called for each host.
	Dir func(t *testing.T) string
	// UID owns new files.
	UID int
	// Live: programs run, values under /proc can be written. Without it they must
	// be refused.
	Live bool
	// Mounts: the test may mount and set the packet filter; Live too.
	Mounts bool
	// Systemd: there is a service manager that runs the Debian programs sleep,
	// true and false. HangingUnit has to be made to hang, and JoinedUnit to take its
	// time, where programs are not real.
	Systemd bool
}

// testCase is one expectation. h is fresh, dir is empty.
type testCase struct {
	name string
	run  func(t *testing.T, h host.Host, dir string)
}

// Run runs the suite. newHost returns a host whose effects are nobody else's.
func Run(t *testing.T, newHost func(t *testing.T) host.Host, o Options) {
	cases := slices.Concat(files(o), locks, watchCases)
	if o.Live {
		cases = append(cases, live...)
	} else {
		cases = append(cases, offline...)
	}
	if o.Mounts {
		cases = slices.Concat(cases, mountCases, filterCases)
	}
	if o.Systemd {
		cases = slices.Concat(cases, units, lifecycles, namings, relations, kinds, watchUnitCases)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, newHost(t), o.Dir(t)) })
	}
}

// files are the cases of host.FS.
func files(o Options) []testCase {
	owned := func(t *testing.T, h host.Host, dir string) { createIsPrivate(t, h, dir, o.UID) }
	return append([]testCase{{"create is private", owned}}, fileCases...)
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want checks an error of the file tree: its meaning and its type.
func want(t *testing.T, what string, err, meaning error) {
	t.Helper()
	if !errors.Is(err, meaning) {
		t.Errorf("%s: error %v, want %v", what, err, meaning)
	}
	var p *fs.PathError
	if !errors.As(err, &p) {
		t.Errorf("%s: error %T, want *fs.PathError", what, err)
	}
}

// put writes a file with mode 0644.
func put(t *testing.T, h host.FS, p, content string) {
	t.Helper()
	must(t, host.WriteFile(h, p, []byte(content), host.Attributes{Mode: 0o644}))
}

// expect checks the content of a file.
func expect(t *testing.T, h host.FS, p, content string) {
	t.Helper()
	got, err := h.ReadFile(p)
	must(t, err)
	if string(got) != content {
		t.Errorf("%s: content %q, want %q", p, got, content)
	}
}

func lstat(t *testing.T, h host.FS, p string) host.Info {
	t.Helper()
	info, err := h.Lstat(p)
	must(t, err)
	return info
}
