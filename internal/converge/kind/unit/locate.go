package unit

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// loaded says that systemd knows what the unit consists of.
func (p *planner) loaded() bool { return p.status.LoadState == "loaded" }

// locate finds what the definition will consist of.
func (p *planner) locate() error {
	var err error
	if p.fragment, err = p.futureFragment(); err != nil {
		return err
	}
	if p.drops, err = p.futureDropIns(); err != nil {
		return err
	}
	known := slices.Clone(p.status.DropInPaths)
	if p.loaded() {
		known = append(known, p.status.FragmentPath)
	}
	for _, name := range known {
		if name = p.Real(name); p.Deletes(name) {
			p.gone = append(p.gone, name)
		}
	}
	slices.Sort(p.gone)
	return nil
}

// futureFragment is systemd's answer, unless the plan changes it.
func (p *planner) futureFragment() (string, error) {
	now := ""
	if p.loaded() && p.status.FragmentPath != "" {
		now = p.Real(p.status.FragmentPath)
	}
	if now == "" || p.Deletes(now) {
		return p.search()
	}
	if info, err := p.Lstat(now); err != nil || info == nil && p.Expected(now) == nil {
		fragment, serr := p.search()
		return fragment, errors.Join(err, serr)
	}
	for _, dir := range dirs {
		if path.Dir(now) == dir && path.Base(now) == p.name {
			return now, nil // nothing planned is stronger
		}
		for _, name := range definers(p.name) {
			if q := p.Expected(dir + "/" + name); q != nil && q.Target != "/dev/null" {
				return q.Path, nil
			}
		}
		if path.Dir(now) == dir {
			return now, nil
		}
	}
	return now, nil
}

// search finds a definition that systemd has not loaded: under another root, or
// one that shows when another goes.
func (p *planner) search() (string, error) { return p.searchFor(p.name, false) }

// searchFor is search for any unit; masks: one that is masked has none.
func (p *planner) searchFor(unit string, masks bool) (string, error) {
	for _, name := range definers(unit) {
		for _, dir := range dirs {
			at := dir + "/" + name
			if p.Expected(at) != nil {
				return at, nil
			}
			info, err := p.Lstat(at)
			if err != nil {
				return "", err
			}
			switch {
			case info == nil || p.Deletes(at):
			case !p.isMask(at):
				return at, nil
			case masks:
				return "", nil
			}
		}
	}
	return "", nil
}

// maxLinks bounds how many links are followed to a definition, as systemd does.
const maxLinks = 64

// definedAt is what systemctl enable makes of a name and where its definition was found: a link
// from there to another definition is another name of that unit, one that leads elsewhere has
// the definition itself at its end (install_info_traverse, shared/install.c of systemd).
func (p *planner) definedAt(unit, at string) (name, fragment string, err error) {
	for range maxLinks {
		if at == "" {
			break
		}
		to, err := p.linkAt(at)
		switch {
		case err != nil || to == "":
			return unit, at, err
		case host.InKernelTree(to):
			return unit, "", nil
		case !slices.Contains(dirs, path.Dir(to)) || slices.Contains(definers(unit), path.Base(to)):
			at = to
			continue
		}
		name = path.Base(to)
		if instance := unitname.Instance(unit); unitname.IsTemplate(name) && instance != "" {
			name = strings.Replace(name, "@", "@"+instance, 1)
		}
		unit = name
		if at, err = p.searchFor(unit, true); err != nil {
			return "", "", err
		}
	}
	return unit, "", nil
}

// linkAt is where a link leads that is at a path or will be; "" where there is none.
func (p *planner) linkAt(at string) (string, error) {
	target := ""
	if q := p.Expected(at); q != nil {
		target = q.Target
	} else {
		info, err := p.Lstat(at)
		if err != nil || info == nil || info.Mode&fs.ModeSymlink == 0 {
			return "", err
		}
		if target, err = p.Host.Readlink(at); err != nil {
			return "", err
		}
	}
	if target == "" {
		return "", nil
	}
	return p.Real(host.Splice(path.Dir(at), target, "")), nil
}

// installDropIns are the drop-ins that systemctl enable reads: those of the unit's own name,
// and of its template's, which are weaker wherever they lie; none of a prefix or of a type
// (unit_file_search, shared/install.c of systemd). They are in the order of their names.
func (p *planner) installDropIns(unit string) ([]string, error) {
	by := map[string]string{}
	for _, name := range definers(unit) {
		for _, dir := range dirs {
			files, err := p.dropInsIn(dir, name+".d")
			if err != nil {
				return nil, err
			}
			for _, at := range files {
				if base := path.Base(at); by[base] == "" {
					by[base] = at
				}
			}
		}
	}
	return inOrder(by), nil
}

func inOrder(by map[string]string) []string {
	out := []string{}
	for _, base := range sorted(by) {
		out = append(out, by[base])
	}
	return out
}

// generated says whether a generator has made a definition, which shows when a mask goes.
func (p *planner) generated() (bool, error) {
	for _, dir := range []string{"/run/systemd/generator.early", "/run/systemd/generator", "/run/systemd/generator.late"} {
		if info, err := p.Lstat(dir + "/" + p.name); err != nil || info != nil {
			return info != nil, err
		}
	}
	return false, nil
}

// isToBeMasked says whether a mask is what systemd will find of the unit.
func (p *planner) isToBeMasked() (bool, error) {
	for _, dir := range dirs[:2] {
		at := dir + "/" + p.name
		if q := p.Expected(at); q != nil {
			return q.Target == "/dev/null", nil
		}
		if info, err := p.Lstat(at); err != nil || info != nil && !p.Deletes(at) {
			return p.isMask(at), err
		}
	}
	return false, nil
}

func (p *planner) isMask(at string) bool {
	target, err := p.Host.Readlink(at)
	return err == nil && target == "/dev/null"
}

// names are all that the unit has, its real one first: systemd reads the drop-ins of each.
func (p *planner) names() []string {
	out := []string{p.name}
	for _, name := range append([]string{p.u.Name}, p.status.Names...) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// futureDropIns are the drop-ins that will be in force: of several with one base
// name the strongest. They are in the order of these names, in which systemd reads them.
func (p *planner) futureDropIns() ([]string, error) {
	by := map[string]string{}
	for _, at := range p.status.DropInPaths {
		if at = p.Real(at); !p.Deletes(at) {
			by[path.Base(at)] = at
		}
	}
	var names []string
	for _, name := range p.names() {
		names = append(names, configurers(name)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, dir := range dirs {
		for _, name := range names {
			if err := p.addDropIns(dir, name+".d", by); err != nil {
				return nil, err
			}
		}
	}
	return inOrder(by), nil
}

// addDropIns adds those of one directory, which is below one of dirs, that no stronger
// one hides. What the plan writes is compared by strength with what systemd has.
func (p *planner) addDropIns(above, base string, by map[string]string) error {
	files, err := p.dropInsIn(above, base)
	for _, at := range files {
		n := path.Base(at)
		if have := by[n]; have == "" || p.Expected(at) != nil && strength(at) < strength(have) {
			by[n] = at
		}
	}
	return err
}

// dropInsIn are those that will be in one directory.
func (p *planner) dropInsIn(above, base string) (out []string, err error) {
	names, err := p.dropInNames(above, base)
	if err != nil {
		return nil, err
	}
	dir := above + "/" + base
	for _, at := range p.ExpectedIn(dir) {
		names = append(names, path.Base(at))
	}
	for _, n := range names {
		if at := dir + "/" + n; strings.HasSuffix(n, ".conf") && !p.Deletes(at) {
			out = append(out, at)
		}
	}
	return out, nil
}

// dropInNames are the names in a directory of drop-ins; none where there is no such
// directory, as of most units. The directory above says so for all of them, unless it
// is a link, which is not followed.
func (p *planner) dropInNames(above, base string) ([]string, error) {
	all, err := p.Listed(above)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if _, there := slices.BinarySearch(all, base); err == nil && !there {
		return nil, nil
	}
	names, err := p.Listed(above + "/" + base)
	if kind.Absence(err) {
		return nil, nil
	}
	return slices.Clip(names), err
}

// strength is the rank of a drop-in's directory, 0 the strongest.
func strength(at string) int { return slices.Index(dirs, path.Dir(path.Dir(at))) }

// definition are all parts that a change of restarts the unit.
func (p *planner) definition() []string {
	out := slices.Clone(p.drops)
	if p.fragment != "" {
		out = append(out, p.fragment)
	}
	slices.Sort(out)
	return out
}

// collectTriggers are the files that somebody named, and what a program reads
// once, when it starts, of what the unit comes after: CA certificates and the
// credential that berth obtained.
func (p *planner) collectTriggers() {
	for _, at := range p.u.Triggers {
		p.triggers = append(p.triggers, p.Real(at))
	}
	for _, at := range p.u.ReloadTriggers {
		p.reloads = append(p.reloads, p.Real(at))
	}
	for _, id := range p.u.After {
		files, regenerated := p.InputsOf(id)
		p.triggers, p.bundles = append(p.triggers, files...), append(p.bundles, regenerated...)
	}
	slices.Sort(p.triggers)
	p.triggers = slices.Compact(p.triggers)
}
