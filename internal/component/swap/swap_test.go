package swap

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

const gib = 1 << 30

func TestResources(t *testing.T) {
	for name, s := range map[string]Settings{
		"os-disk.json":       {Bytes: gib},
		"resource-disk.json": {Bytes: gib, ResourceDisk: "/mnt", ResourceDiskBytes: 8 * gib, Program: "/usr/bin/berth"},
	} {
		t.Run(name, func(t *testing.T) {
			rs, err := Resources(s)
			if err != nil {
				t.Fatal(err)
			}
			st := golden.State(t, rs)
			b, err := json.MarshalIndent(st, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, string(b)+"\n")
			again, err := Read(golden.File(t, st, SettingsFile).Content.Data())
			if err != nil || !cmp.Equal(again, &desired.Swap{Path: s.Path(), Bytes: gib}) {
				t.Errorf("read back: %+v, %v", again, err)
			}
		})
	}
}

// The resource disk is taken where all of it has room, whatever is free just now.
func TestWhere(t *testing.T) {
	for want, s := range map[string]Settings{
		"/swapfile":              {Bytes: gib},
		"/mnt/swapfile":          {Bytes: 9 * gib, ResourceDisk: "/mnt", ResourceDiskBytes: 10 * gib},
		"/mnt/resource/swapfile": {Bytes: gib, ResourceDisk: "/mnt/resource", ResourceDiskBytes: 10 * gib},
	} {
		if got := s.Path(); got != want {
			t.Errorf("%+v: %s, want %s", s, got, want)
		}
	}
	if got := (Settings{Bytes: 9*gib + 1, ResourceDisk: "/mnt", ResourceDiskBytes: 10 * gib}).Path(); got != "/swapfile" {
		t.Errorf("too small a resource disk: %s", got)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"", "{", "{}", `{"path":"swapfile","bytes":1073741824}`, `{"path":"/swapfile","bytes":4096}`} {
		if s, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), SettingsFile) {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"path":"/swapfile","bytes":1073741824}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := Read(text); err == nil && (s.Bytes < desired.MinSwap || s.Path[0] != '/') {
			t.Errorf("%q: %+v", text, s)
		}
	})
}
