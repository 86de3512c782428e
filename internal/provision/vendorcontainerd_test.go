package provision

import (
	"context"
	"path"
	"testing"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestContainerdOfAVendorsUnit: what the unit of a package starts is what counts, also
// where it is gone, or something of that name is elsewhere.
func TestContainerdOfAVendorsUnit(t *testing.T) {
	const vendors = "/usr/lib/systemd/system/containerd.service"
	unit := func(start string) func(*memory.Host) {
		return func(h *memory.Host) { h.Put(vendors, "[Service]\nExecStart="+start+"\n", 0o644) }
	}
	for name, c := range map[string]struct {
		arrange          func(*memory.Host)
		starts, is, said string
	}{
		"no unit": {func(h *memory.Host) { h.Put("/usr/local/bin/containerd", "2", 0o755) }, "", "/usr/local/bin/containerd", "2"},
		"gone":    {unit("/usr/bin/containerd"), "/usr/bin/containerd", "", ""},
		"gone, and elsewhere": {func(h *memory.Host) {
			unit("/usr/bin/containerd")(h)
			h.Put("/usr/local/bin/containerd", "2", 0o755)
		}, "/usr/bin/containerd", "", ""},
		"there": {func(h *memory.Host) {
			unit("/usr/local/bin/containerd --log-level=info")(h)
			h.Put("/usr/local/bin/containerd", "2", 0o755)
			h.Put("/usr/bin/containerd", "1", 0o755)
		}, "/usr/local/bin/containerd", "/usr/local/bin/containerd", "2"},
		"a link": {func(h *memory.Host) {
			unit("/usr/bin/containerd")(h)
			h.PutLink("/opt/containerd/containerd", "/usr/bin/containerd", 0)
			h.Put("/opt/containerd/containerd", "3", 0o755)
		}, "/opt/containerd/containerd", "/opt/containerd/containerd", "3"},
		"another program": {func(h *memory.Host) {
			unit("/usr/bin/k3s containerd")(h)
			h.Put("/usr/bin/containerd", "1", 0o755)
		}, "", "/usr/bin/containerd", "1"},
		"the administrator's directory first": {func(h *memory.Host) {
			unit("/usr/bin/containerd")(h)
			h.Put("/usr/local/lib/systemd/system/containerd.service", "[Service]\nExecStart=/opt/containerd\n", 0o644)
		}, "/opt/containerd", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			c.arrange(h)
			f, err := Gather(t.Context(), h, FactsSource{
				Asked: func() (azure.Cloud, error) { return azure.Cloud{}, nil },
				Version: func(_ context.Context, h host.Host, p string) (string, error) {
					text, err := h.ReadFile(p)
					return string(text), err
				},
			})
			if err != nil || f.ContainerdStarts != c.starts || f.ContainerdPath != c.is || f.ContainerdVersion != c.said {
				t.Errorf("starts %q, is %q, version %q, %v", f.ContainerdStarts, f.ContainerdPath, f.ContainerdVersion, err)
			}
		})
	}
}

func TestStartedBy(t *testing.T) {
	for text, want := range map[string]string{
		"[Service]\nExecStart=/usr/bin/containerd\n":                                      "/usr/bin/containerd",
		"[Service]\nExecStart=-/usr/bin/containerd -l debug\n":                            "/usr/bin/containerd",
		"[Service]\nExecStart=!!\"/usr/bin/containerd\"\n":                                "/usr/bin/containerd",
		"[Service]\nExecStart=/a/containerd\nExecStart=\nExecStart=/usr/bin/containerd\n": "/usr/bin/containerd",
		"[Service]\nExecStart= \\\n  /usr/bin/containerd\n":                               "/usr/bin/containerd",
		"[Service]\nExecStart=/usr/bin/containerd\nExecStart=\n":                          "",
		"[Service]\nExecStart=containerd\n":                                               "",
		"[Service]\nExecStart=/usr/bin/../bin/containerd\n":                               "",
		"[Service]\nExecStart=/opt/%i/containerd\n":                                       "",
		"[Service]\nExecStart=${DIR}/containerd\n":                                        "",
		"[Unit]\nExecStart=/usr/bin/containerd\n":                                         "",
		"[Service": "",
		"":         "",
	} {
		if got := startedBy(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzStartedBy: what comes of it is the whole path of a program named containerd, or
// nothing.
func FuzzStartedBy(f *testing.F) {
	for _, s := range []string{"[Service]\nExecStart=/usr/bin/containerd\n", "[Service]\nExecStart=-\"/a b/containerd\" x\n", "[Service]\nExecStart=\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p := startedBy(text); p != "" && (p[0] != '/' || path.Clean(p) != p || path.Base(p) != "containerd") {
			t.Errorf("%q", p)
		}
	})
}
