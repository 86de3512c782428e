package sysctl

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestChoice(t *testing.T) {
	for in, want := range map[string]string{
		"always [madvise] never\n": "madvise",
		"10\n":                     "10\n",
		"a ] [":                    "a ] [",
	} {
		if got := choice(in); got != want {
			t.Errorf("choice(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSnapshotHasWhatKubeletWrites(t *testing.T) {
	s := Snapshot()
	for _, p := range []string{"/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops"} {
		if s[p] == "" {
			t.Errorf("no %s", p)
		}
	}
}

// TestRestore changes a setting of this machine, as a node would.
func TestRestore(t *testing.T) {
	const setting = "/proc/sys/vm/max_map_count"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(setting, before, 0) })
	saved := filepath.Join(t.TempDir(), "saved")
	if err := Save(saved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(setting, []byte("262145"), 0); err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(saved)
	if err != nil || !slices.Contains(restored, setting) {
		t.Errorf("restored %v, %v", restored, err)
	}
	if after, _ := os.ReadFile(setting); string(after) != string(before) {
		t.Errorf("before %q, after %q", before, after)
	}
}
