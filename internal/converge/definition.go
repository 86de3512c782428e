package converge

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// definitionDirs are where a unit's definition and its drop-ins may lie, the
// strongest first.
var definitionDirs = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"}

var unitTypes = []string{".service", ".socket", ".timer", ".mount", ".automount", ".swap", ".path", ".slice", ".target"}

// definedBy is the unit whose definition or drop-in a path is; "" if it is none.
// What systemd calls it may be a template or a prefix: no unit of its own.
func definedBy(name string) string {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	if slices.Contains(definitionDirs, dir) && slices.Contains(unitTypes, path.Ext(base)) {
		return base
	}
	if strings.HasSuffix(base, ".conf") && strings.HasSuffix(dir, ".d") && slices.Contains(definitionDirs, path.Dir(dir)) {
		return strings.TrimSuffix(path.Base(dir), ".d")
	}
	return ""
}

// goneOf are the parts of a unit's definition that this plan deletes.
func (p *planning) goneOf(unit string) []string {
	out := slices.DeleteFunc(slices.Collect(maps.Keys(p.deleted)), func(name string) bool { return definedBy(name) != unit })
	slices.Sort(out)
	return out
}

// vanishedOf are the directories in which a run that was cut off, or somebody
// else, deleted parts of a unit's definition: they changed when that happened.
func (p *planning) vanishedOf(unit string) ([]string, error) {
	var out []string
	for _, name := range p.vanished {
		if definedBy(name) != unit {
			continue
		}
		for name = path.Dir(name); ; name = path.Dir(name) {
			info, err := lstat(p.h, name)
			if err != nil {
				return nil, err
			}
			if info != nil {
				break
			}
		}
		out = append(out, name)
	}
	return out, nil
}

// forgetting plans that systemd forgets a part of a definition that goes,
// whoever the unit belongs to: it would go by it at the unit's next start.
func (p *planning) forgetting(t *task, name string) {
	if definedBy(name) != "" && !p.opt.Offline {
		t.live = p.reloadOnce
	}
}

// reloadOnce makes systemd read all definitions, if nobody has since the names
// changed.
func (p *planning) reloadOnce(ctx context.Context) error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	if p.reloaded {
		return nil
	}
	return p.reloadNow(ctx)
}

func (p *planning) reloadNow(ctx context.Context) error {
	err := p.h.DaemonReload(ctx)
	p.reloaded = err == nil
	return err
}

// unforgotten plans the same for a definition that went in a run which was cut
// off. A unit that is to run sees to it itself.
func (p *planning) unforgotten(ctx context.Context) error {
	for _, name := range p.vanished {
		unit := definedBy(name)
		if u, ok := p.st.Lookup(desired.UnitID(unit)).(*desired.Unit); p.opt.Offline || !isUnitName(unit) || ok && u.Activation == desired.Started {
			continue
		}
		st, err := p.h.Unit(ctx, unit)
		if err != nil {
			return err
		}
		if st.NeedDaemonReload {
			t := &task{id: desired.UnitID(unit), base: &desired.Base{}, live: p.reloadOnce}
			t.act(VerbReload, name+" is gone", DisruptNone)
			p.tasks = append(p.tasks, t)
		}
	}
	return nil
}

// isUnitName says whether a name is that of a unit, and not of a template, a
// prefix or a type, which drop-ins may be for, too.
func isUnitName(name string) bool {
	stem := strings.TrimSuffix(name, path.Ext(name))
	return stem != "" && slices.Contains(unitTypes, path.Ext(name)) && !strings.HasSuffix(stem, "@") && !strings.HasSuffix(stem, "-")
}
