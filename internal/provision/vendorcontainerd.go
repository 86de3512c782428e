package provision

import (
	"cmp"
	"path"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/host"
)

// containerdStarts is component.Facts.ContainerdStarts.
func containerdStarts(h host.FS) string {
	for _, dir := range []string{"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
		text, err := h.ReadFile(path.Join(dir, containerd.Unit))
		if err != nil {
			continue
		}
		p := startedBy(string(text))
		return cmp.Or(resolve(h, p), p)
	}
	return ""
}

// containerdPaths are where containerd may be that counts.
func containerdPaths(starts string) []string {
	if starts != "" {
		return []string{starts}
	}
	return component.ContainerdPaths
}

// startedBy is the path of containerd that a unit starts (systemd.service(5)); "" where
// it starts another program, or does not say which without more ado.
func startedBy(text string) string {
	options, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		return ""
	}
	program := ""
	for _, o := range options {
		if o.Section != "Service" || o.Name != "ExecStart" {
			continue
		}
		words := strings.Fields(strings.TrimLeft(strings.ReplaceAll(o.Value, "\\\n", " "), "@-:+!| \t"))
		switch {
		case len(words) == 0:
			program = "" // an empty line takes back those before
		case program == "":
			program = strings.Trim(words[0], `"'`)
		}
	}
	if !path.IsAbs(program) || path.Clean(program) != program || path.Base(program) != "containerd" || strings.ContainsAny(program, "%$\\") {
		return ""
	}
	return program
}
