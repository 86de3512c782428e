package memory

import (
	"path"
	"slices"
	"strings"
)

// names are the units that a list setting of a definition names.
func (d *definition) names(key string) []string {
	var out []string
	for _, name := range d.settings.names(key) {
		out = append(out, expand(name, d.id))
	}
	return out
}

// requiring are the settings by which a unit stops with another.
var requiring = []string{"Requires", "Requisite", "BindsTo", "PartOf"}

// naming are all by which a unit names others.
var naming = append([]string{"Wants", "After", "Before", "Upholds", "Conflicts", "OnFailure"}, requiring...)

// relate works out what a unit is to others.
func (d *definition) relate() {
	d.triggers = d.triggered()
	ties := append(d.implicit(), d.requires...)
	for _, key := range requiring {
		ties = append(ties, d.names(key)...)
	}
	d.ties = sorted(ties)
	refs := slices.Concat(d.ties, d.wants, d.requires, d.triggers, d.sockets())
	for _, key := range naming {
		refs = append(refs, d.names(key)...)
	}
	d.refs = sorted(refs)
}

// triggered are the units that this one starts when something happens.
func (d *definition) triggered() []string {
	ext := path.Ext(d.id)
	stem := strings.TrimSuffix(d.id, ext)
	key := map[string]string{".socket": "Socket.Service", ".timer": "Timer.Unit", ".path": "Path.Unit"}[ext]
	switch {
	case ext == ".automount":
		return []string{stem + ".mount"}
	case key == "", d.settings.bool("Socket.Accept"):
		return nil
	case d.settings.last(key) != "":
		return []string{expand(d.settings.last(key), d.id)}
	}
	return []string{stem + ".service"}
}

// sockets are those that a service names itself: they start with it.
func (d *definition) sockets() []string {
	return strings.Fields(expand(strings.Join(d.settings["Service.Sockets"], " "), d.id))
}

// implicit are the units that each of a type needs (systemd.special(7)).
func (d *definition) implicit() []string {
	var out []string
	ext := path.Ext(d.id)
	switch ext {
	case ".service", ".socket", ".mount", ".swap":
		out = append(out, d.slice(strings.ToUpper(ext[1:2])+ext[2:]))
	case ".slice":
		return parentSlice(d.id)
	}
	isDefault := d.settings.last("Unit.DefaultDependencies") == "" || d.settings.bool("Unit.DefaultDependencies")
	if isDefault && slices.Contains([]string{".service", ".socket", ".timer", ".path"}, ext) {
		out = append(out, "sysinit.target")
	}
	return out
}

// slice is the slice of a unit with processes: instances of a template have one.
func (d *definition) slice(section string) string {
	if s := d.settings.last(section + ".Slice"); s != "" {
		return expand(s, d.id)
	}
	if prefix, _, of := strings.Cut(d.id, "@"); of {
		return "system-" + strings.ReplaceAll(prefix, "-", `\x2d`) + ".slice"
	}
	return "system.slice"
}

// parentSlice is a.slice of a-b.slice.
func parentSlice(id string) []string {
	stem := strings.TrimSuffix(id, ".slice")
	switch i := strings.LastIndexByte(stem, '-'); {
	case stem == "-":
		return nil
	case i > 0:
		return []string{stem[:i] + ".slice"}
	}
	return []string{"-.slice"}
}

// sorted is a list in order, each item once; nil if empty.
func sorted(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	return slices.Compact(list)
}
