package unit

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/host"
)

// definition are the files that define a unit. Their paths are real ones.
type definition struct {
	// fragment is "" where a unit has none.
	fragment string
	drops    []string
}

// heldBy are those that systemd has read.
func heldBy(v *kind.View, st host.UnitStatus) (d definition) {
	if loaded(st) && st.FragmentPath != "" {
		d.fragment = v.Real(st.FragmentPath)
	}
	for _, at := range st.DropInPaths {
		d.drops = append(d.drops, v.Real(at))
	}
	return d
}

// loaded says that systemd knows what the unit consists of.
func loaded(st host.UnitStatus) bool { return st.LoadState == "loaded" }

// paths are all parts, in order.
func (d definition) paths() []string {
	out := slices.Clone(d.drops)
	if d.fragment != "" {
		out = append(out, d.fragment)
	}
	slices.Sort(out)
	return out
}

// isOlder says that systemd holds something older than the definition. Its own flag sees
// neither a new definition of higher precedence than the loaded one, nor a drop-in in a
// directory that did not exist at its last reload.
func (d definition) isOlder(v *kind.View, st host.UnitStatus) bool {
	if st.NeedDaemonReload || st.LoadState == "masked" {
		return true
	}
	has := heldBy(v, st)
	stronger := strings.HasPrefix(d.fragment, adminDir+"/") && has.fragment != d.fragment
	bases := map[string]bool{} // a drop-in hides one of the same name in a directory of lower precedence
	for _, at := range has.drops {
		bases[path.Base(at)] = true
	}
	return loaded(st) && (stronger || slices.ContainsFunc(d.drops, func(at string) bool { return !bases[path.Base(at)] }))
}

// future is what a unit with some names, the real one first, will consist of, where it consists
// of has now: of several drop-ins with one base name the strongest, in the order of these names,
// in which systemd reads them.
func (l loadPath) future(names []string, has definition) (d definition, err error) {
	if d.fragment, err = l.fragment(names[0], has.fragment); err != nil {
		return d, err
	}
	by := map[string]string{}
	for _, at := range has.drops {
		if !l.v.Deletes(at) {
			by[path.Base(at)] = at
		}
	}
	var of []string
	for _, name := range names {
		of = append(of, configurers(name)...)
	}
	slices.Sort(of)
	of = slices.Compact(of)
	for _, dir := range dirs {
		for _, name := range of {
			files, err := l.dropInsIn(dir, name+".d")
			if err != nil {
				return d, err
			}
			for _, at := range files {
				// What the plan writes is compared by strength with what systemd has.
				have := by[path.Base(at)]
				if have == "" || l.v.Expected(at) != nil && strength(at) < strength(have) {
					by[path.Base(at)] = at
				}
			}
		}
	}
	d.drops = inOrder(by)
	return d, nil
}

// installDropIns are the drop-ins that systemctl enable reads: those of the unit's own name,
// and of its template's, which are weaker wherever they lie; none of a prefix or of a type
// (unit_file_search, shared/install.c of systemd). They are in the order of their names.
func (l loadPath) installDropIns(unit string) ([]string, error) {
	by := map[string]string{}
	for _, at := range places(unit) {
		files, err := l.dropInsIn(path.Dir(at), path.Base(at)+".d")
		if err != nil {
			return nil, err
		}
		for _, at := range files {
			if base := path.Base(at); by[base] == "" {
				by[base] = at
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

// strength is the rank of a drop-in's directory, 0 the strongest.
func strength(at string) int { return slices.Index(dirs, path.Dir(path.Dir(at))) }

// dropInsIn are those that will be in one directory, which is below one of dirs.
func (l loadPath) dropInsIn(above, base string) (out []string, err error) {
	names, err := l.dropInNames(above, base)
	if err != nil {
		return nil, err
	}
	dir := above + "/" + base
	for _, at := range l.v.ExpectedIn(dir) {
		names = append(names, path.Base(at))
	}
	for _, n := range names {
		if at := dir + "/" + n; strings.HasSuffix(n, ".conf") && !l.v.Deletes(at) {
			out = append(out, at)
		}
	}
	return out, nil
}

// dropInNames are the names in a directory of drop-ins; none where there is no such
// directory, as of most units. The directory above says so for all of them, unless it
// is a link, which is not followed.
func (l loadPath) dropInNames(above, base string) ([]string, error) {
	all, err := l.v.Listed(above)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if _, there := slices.BinarySearch(all, base); err == nil && !there {
		return nil, nil
	}
	names, err := l.v.Listed(above + "/" + base)
	if kind.Absence(err) {
		return nil, nil
	}
	return slices.Clip(names), err
}
