package memory

import (
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// identify is the real name of a unit. A link that is new for a unit that is
// loaded is not heeded before the next reload.
func (h *Host) identify(name string) string {
	if id, ok := h.systemd.aliases[name]; ok {
		return id
	}
	id := h.leadsTo(name)
	if u := h.systemd.units[id]; id == name || u != nil && u.def != nil {
		return name
	}
	return id
}

// leadsTo follows the links by which one unit name stands for another.
func (h *Host) leadsTo(name string) string {
	for range 8 {
		next := h.aliasTarget(name)
		if t := unitname.Template(name); next == "" && t != "" {
			if next = h.aliasTarget(t); unitname.IsTemplate(next) {
				next = instance(next, name)
			}
		}
		if next == "" {
			break
		}
		name = next
	}
	return name
}

// aliasTarget is the other unit name that a link of this name leads to; a link to
// a file elsewhere is a definition.
func (h *Host) aliasTarget(name string) string {
	for _, dir := range h.unitTree() {
		n := dir.node.children[name]
		if n == nil {
			continue
		}
		if !n.isLink() {
			return ""
		}
		if _, err := h.follow(path.Join(dir.path, name), false); err != nil {
			return ""
		}
		to := host.Splice(dir.path, n.target, "")
		if in := strings.Replace(path.Dir(to), "/lib/", "/usr/lib/", 1); path.Base(to) == name ||
			!slices.Contains(unitDirs, path.Dir(to)) && !slices.Contains(unitDirs, in) {
			return ""
		}
		return path.Base(to)
	}
	return ""
}

// namesOf are the names of a unit: its own, then those that lead to it.
func (h *Host) namesOf(id string) []string {
	found := map[string]bool{}
	for _, dir := range h.unitTree() {
		for name, n := range dir.node.children {
			if !n.isLink() || name == id {
				continue
			}
			if unitname.IsTemplate(name) && unitname.Template(id) != "" {
				name = instance(name, id)
			}
			if h.leadsTo(name) == id {
				found[name] = true
			}
		}
	}
	return append([]string{id}, sortedKeys(found)...)
}

// instance is the instance of a template that like is of another.
func instance(template, like string) string {
	_, of, _ := strings.Cut(strings.TrimSuffix(like, path.Ext(like)), "@")
	ext := path.Ext(template)
	return strings.TrimSuffix(template, ext) + of + ext
}

// expand replaces the specifiers of systemd.unit(5) that a unit's name gives.
func expand(text, id string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	stem := strings.TrimSuffix(id, path.Ext(id))
	prefix, of, _ := strings.Cut(stem, "@")
	last := prefix[strings.LastIndexByte(prefix, '-')+1:]
	return strings.NewReplacer("%%", "%", "%i", of, "%I", strings.ReplaceAll(of, "-", "/"),
		"%n", id, "%N", stem, "%p", prefix, "%j", last).Replace(text)
}
