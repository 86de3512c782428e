package cli

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/machine"
	"github.com/berth-dev/berth/internal/host/memory"
)

// BenchmarkLook is the agent's look at everything where nothing has changed: files on
// disk, and a systemd that answers at once. The large document is that of the lab's
// measurements: 1 MB with 202 files and 51 units.
func BenchmarkLook(b *testing.B) {
	for name, c := range map[string]struct{ files, units int }{"small": {1, 1}, "large": {201, 51}} {
		b.Run(name, func(b *testing.B) { benchmarkLook(b, lookedAt(c.files, c.units)) })
	}
}

func benchmarkLook(b *testing.B, document string) {
	mem := memory.New()
	mem.PutDir("/run/berth")
	mem.Put("/usr/bin/sleep", "program", 0o755)
	scope := converge.Scope{Decide: func(converge.Action) converge.Decision { return converge.Do }} // as the agent's
	look := func(h host.Host) func() *converge.Result {
		t, err := (&env{}).opener(h, agent.Source{Owners: []desired.Owner{desired.OwnerOSC}}, nil, true).Open(b.Context(), reconcile.DocumentOf([]byte(document)))
		if err != nil {
			b.Fatal(err)
		}
		return func() *converge.Result {
			res, err := t.Engine.ApplyScope(b.Context(), t.State, scope)
			if err != nil {
				b.Fatal(err)
			}
			return res
		}
	}
	look(mem)()
	dir := b.TempDir()
	copyTree(b, mem, "/", dir)
	disk, err := machine.New(dir)
	if err != nil {
		b.Fatal(err)
	}
	again := look(running{disk, disk, disk, disk, disk, disk, disk, mem, disk.(host.Describer)})
	again()
	before := processorTime(b)
	b.ReportAllocs()
	for b.Loop() {
		if res := again(); !res.Plan.Empty() {
			b.Fatalf("there is something to do: %+v", res.Plan.Actions)
		}
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// lookedAt is a document with files of 3.7 KB and units that each have one of them as
// trigger.
func lookedAt(files, units int) string {
	text := oscHead + "spec:\n  files:\n"
	for i := range files {
		data := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fmt.Sprintf("%03d is this file's line\n", i), 156)))
		text += fmt.Sprintf("  - path: /etc/large/%03d\n    permissions: 420\n    content: {inline: {encoding: b64, data: %s}}\n", i, data)
	}
	text += "  units:\n"
	for i := range units {
		text += fmt.Sprintf("  - name: agent-bench-%02d.service\n    command: start\n    enable: true\n    filePaths: [/etc/large/%03d]\n    content: %q\n",
			i, i, "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n")
	}
	return text
}

// running is a tree on disk with the systemd of a machine in memory.
type running struct {
	host.FS
	host.Runner
	host.Mounter
	host.PacketFilter
	host.Clock
	host.Locker
	host.Watcher
	host.Systemd
	host.Describer
}

// copyTree copies what a machine has at a path to below a directory.
func copyTree(b *testing.B, h host.Host, p, dir string) {
	b.Helper()
	info, err := h.Lstat(p)
	must := func(err error) {
		if b.Helper(); err != nil {
			b.Fatal(err)
		}
	}
	must(err)
	to := filepath.Join(dir, p)
	switch {
	case info.Mode.IsDir():
		if p != "/" {
			must(os.Mkdir(to, info.Mode.Perm()))
		}
		names, err := h.ReadDir(p)
		must(err)
		for _, name := range names {
			copyTree(b, h, filepath.Join(p, name), dir)
		}
	case info.Mode&fs.ModeSymlink != 0:
		target, err := h.Readlink(p)
		must(err)
		must(os.Symlink(target, to))
	case info.IsRegular():
		text, err := h.ReadFile(p)
		must(err)
		must(os.WriteFile(to, text, info.Mode.Perm()))
	}
}
