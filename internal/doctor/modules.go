package doctor

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/kernel"
	"github.com/berth-dev/berth/internal/desired"
)

func checkModules(_ context.Context, v *visit) *finding {
	f := &finding{}
	for _, r := range kernel.Resources(kernel.Settings{}) {
		if m, ok := r.(*desired.Module); ok {
			v.module(f, m)
		}
	}
	return f
}

func (v *visit) module(f *finding, m *desired.Module) {
	there, err := v.evident(m)
	if err != nil {
		f.unread("whether "+m.Name+" is loaded", err)
		return
	}
	if there {
		f.ok("%s is there", m.Name)
		return
	}
	found, err := v.loadable(m.Name)
	switch {
	case err != nil:
		f.unread("what modules there are", err)
	case found:
		f.ok("%s will be loaded", m.Name)
	default:
		f.fail("install the kernel's package of modules; in a container, load it on the host", "%s is not loaded, and the machine has no module of that name for its kernel", m.Name)
	}
}

func (v *visit) evident(m *desired.Module) (bool, error) {
	for _, p := range m.Evidence {
		if there, err := v.there(p); there || err != nil {
			return there, err
		}
	}
	if m.Filesystem == "" {
		return false, nil
	}
	list, err := v.Host.ReadFile("/proc/filesystems")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.Contains(strings.Fields(string(list)), m.Filesystem), err
}

// loadable says whether the kernel's lists have a module: modules.dep what can be
// loaded, modules.builtin what need not be.
func (v *visit) loadable(name string) (bool, error) {
	release, err := v.line("/proc/sys/kernel/osrelease")
	if err != nil {
		return false, err
	}
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		text, err := v.Host.ReadFile(path.Join("/usr/lib/modules", release, list))
		if errors.Is(err, fs.ErrNotExist) {
			text, err = v.Host.ReadFile(path.Join("/lib/modules", release, list))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		for line := range strings.Lines(string(text)) {
			file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			base, _, _ := strings.Cut(path.Base(file), ".ko")
			if strings.ReplaceAll(base, "-", "_") == name {
				return true, nil
			}
		}
	}
	return false, nil
}
