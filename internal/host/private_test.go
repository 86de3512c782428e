package host_test

import (
	"io/fs"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestPrivateDir(t *testing.T) {
	const dir = "/var/lib/berth"
	for name, c := range map[string]struct {
		put  func(*memory.Host)
		want fs.FileMode
	}{
		"absent":       {func(*memory.Host) {}, fs.ModeDir | 0o700},
		"open to all":  {func(h *memory.Host) { h.PutDir(dir) }, fs.ModeDir | 0o700},
		"moved":        {func(h *memory.Host) { h.PutDir("/data"); h.PutLink("/data", dir, 0) }, fs.ModeSymlink | 0o777},
		"twice, equal": {func(h *memory.Host) { _ = host.PrivateDir(h, dir) }, fs.ModeDir | 0o700},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			c.put(h)
			if err := host.PrivateDir(h, dir); err != nil {
				t.Fatal(err)
			}
			if info, err := h.Lstat(dir); err != nil || info.Mode != c.want {
				t.Errorf("mode %v, %v, want %v", info.Mode, err, c.want)
			}
			if info, err := h.Lstat("/var/lib"); err != nil || info.Mode.Perm() != 0o755 {
				t.Errorf("parent: %v, %v", info.Mode, err)
			}
		})
	}
}
