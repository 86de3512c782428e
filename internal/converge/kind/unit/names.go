package unit

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/unitname"
)

// adminDir is where berth makes the links of [Install], as systemctl enable does.
const adminDir = "/etc/systemd/system"

// dirs are where definitions and drop-ins may lie, the strongest first
// (systemd.unit(5), without what generators make).
var dirs = []string{adminDir, "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"}

var unitTypes = []string{".service", ".socket", ".timer", ".mount", ".automount", ".swap", ".path", ".slice", ".target"}

// part is what a name of the tree is for units.
type part struct {
	// of is a unit ("w.service", "w@a.service"), a template ("w@.service"), a prefix
	// ("w-.service", "w-@a.service", "w-@.service") or a type ("service").
	of   string
	role role
}

type role int

const (
	unitFile role = iota + 1
	dropIn
	// wantedLink is a link that makes another unit pull in this one.
	wantedLink
)

// partOf says what a path is for units; ok is false where it is nothing to them.
func partOf(name string) (part, bool) {
	dir, base := path.Dir(name), path.Base(name)
	if slices.Contains(dirs, dir) && slices.Contains(unitTypes, path.Ext(base)) {
		return part{base, unitFile}, true
	}
	if !slices.Contains(dirs, path.Dir(dir)) {
		return part{}, false
	}
	above := path.Base(dir)
	switch {
	case strings.HasSuffix(above, ".d") && strings.HasSuffix(base, ".conf"):
		return part{strings.TrimSuffix(above, ".d"), dropIn}, true
	case pullsIn(above):
		return part{base, wantedLink}, true
	}
	return part{}, false
}

// pulling are the directories of a unit whose links make it pull in others, by the key of
// [Install] that asks for such a link.
var pulling = map[string]string{"WantedBy": ".wants", "RequiredBy": ".requires", "UpheldBy": ".upholds"}

// pullsIn says whether a directory is one of those.
func pullsIn(dir string) bool {
	return slices.Contains(slices.Collect(maps.Values(pulling)), path.Ext(dir))
}

// isUnit says whether a name is that of a unit, and not of a template, a prefix
// or a type.
func isUnit(name string) bool {
	stem := strings.TrimSuffix(name, path.Ext(name))
	return stem != "" && slices.Contains(unitTypes, path.Ext(name)) && !unitname.IsTemplate(name) && !strings.HasSuffix(stem, "-")
}

// definers are the names under which a unit's definition may lie.
func definers(name string) []string {
	if t := unitname.Template(name); t != "" {
		return []string{name, t}
	}
	return []string{name}
}

// places are the paths at which it may lie, the strongest first: a template's are weaker wherever
// they are.
func places(name string) (out []string) {
	for _, definer := range definers(name) {
		for _, dir := range dirs {
			out = append(out, dir+"/"+definer)
		}
	}
	return out
}

// configurers are the names under which its drop-ins may lie, those first that win: its own,
// its template's, its prefixes', those of an instance or template with each prefix, its type's
// (unit_file_find_dirs, shared/dropin.c of systemd).
func configurers(name string) []string {
	out, ext := definers(name), path.Ext(name)
	stem, instance, at := strings.Cut(strings.TrimSuffix(name, ext), "@")
	var prefixed []string
	for i := len(stem) - 2; i > 0; i-- {
		if stem[i] != '-' {
			continue
		}
		prefix := stem[:i+1]
		out = append(out, prefix+ext)
		if at {
			prefixed = append(prefixed, definers(prefix+"@"+instance+ext)...)
		}
	}
	return append(append(out, prefixed...), strings.TrimPrefix(ext, "."))
}

// concerns says whether a part is one of a unit's.
func (p part) concerns(unit string) bool {
	switch p.role {
	case unitFile:
		return slices.Contains(definers(unit), p.of)
	case dropIn:
		return slices.Contains(configurers(unit), p.of)
	}
	return p.of == unit
}

// pattern matches the units that a part may concern, for ListUnits.
func (p part) pattern() string {
	if !strings.Contains(p.of, ".") {
		return "*." + p.of
	}
	ext := path.Ext(p.of)
	stem := strings.TrimSuffix(p.of, ext)
	if unitname.IsTemplate(p.of) || strings.HasSuffix(stem, "-") {
		stem += "*"
	}
	return strings.Replace(stem, "-@", "-*@", 1) + ext
}

// expand replaces those specifiers that [Install] may hold and that speak of the unit: systemd
// refuses the unescaped ones there (%I, %J, %P), and in the name of a unit %% is none.
func expand(value, name string) string {
	stem := strings.TrimSuffix(name, path.Ext(name))
	prefix, _, _ := strings.Cut(stem, "@")
	return strings.NewReplacer("%n", name, "%N", stem, "%p", prefix, "%i", unitname.Instance(name), "%j", prefix[strings.LastIndexByte(prefix, '-')+1:]).Replace(value)
}
