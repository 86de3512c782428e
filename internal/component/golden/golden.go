// Package golden compares generated text with a reviewed copy of it in testdata.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Check compares got with testdata/name; with -update it becomes it.
func Check(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:forbidigo // the reviewed copy, in tests only
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:forbidigo // the reviewed copy, in tests only
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// Region compares got with the part of a page between <!-- name --> and
// <!-- /name -->; with -update it becomes it.
func Region(t *testing.T, page, name, got string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->\n"
	before, rest, found := strings.Cut(string(text), begin)
	want, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no %s", page, name)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+got+end+after), 0o644); err != nil { //nolint:forbidigo // the page, in tests only
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs, `make generate` writes it (-want +got):\n%s", page, diff)
	}
}

// State seals resources, as a contract would.
func State(t testing.TB, rs []desired.Resource) *desired.State {
	t.Helper()
	st := &desired.State{Owner: desired.OwnerBerth}
	st.Add(rs...)
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	return st
}

// File returns the file at a path of a sealed state.
func File(t testing.TB, st *desired.State, path string) *desired.File {
	t.Helper()
	f, ok := st.Lookup(desired.FileID(path)).(*desired.File)
	if !ok {
		t.Fatalf("%s is not in the state", path)
	}
	return f
}
