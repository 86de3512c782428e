package unit

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	systemdunit "github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/unitname"
)

// install is what [Install] of definitions and of their drop-ins asks for.
type install struct {
	// links are in the order of their paths; also are the units that Also= names.
	links []*kind.Change
	also  []string
	// remarks tell what can't be had.
	remarks []string
}

// installOf is what systemctl enable makes of a unit, those among it that Also= names. Of these,
// one that is nowhere or masked is left out, as systemctl does, and one that the state speaks of
// is that one's matter.
func (l loadPath) installOf(unit, fragment string) (install, error) {
	all, err := l.installOfOne(unit, fragment)
	seen := map[string]bool{unit: true}
	for err == nil && len(all.also) > 0 {
		name := all.also[0]
		all.also = all.also[1:]
		if seen[name] || l.v.Task(desired.UnitID(name)) != nil {
			continue
		}
		seen[name] = true
		var more install
		if fragment, err = l.search(name, true); err == nil {
			more, err = l.installOfOne(name, fragment)
		}
		all.links, all.also, all.remarks = append(all.links, more.links...), append(all.also, more.also...), append(all.remarks, more.remarks...)
	}
	slices.SortStableFunc(all.links, func(a, b *kind.Change) int { return strings.Compare(a.Path, b.Path) })
	all.links = slices.CompactFunc(all.links, func(a, b *kind.Change) bool { return a.Path == b.Path }) // one may be asked for twice
	return all, err
}

// installOfOne is that of one definition.
func (l loadPath) installOfOne(unit, fragment string) (in install, err error) {
	unit, fragment, err = l.definedAt(unit, fragment)
	if err != nil || fragment == "" {
		return in, err
	}
	options, err := l.options(unit, fragment)
	if err != nil {
		return in, err
	}
	name := installName(unit, options)
	for _, o := range options {
		for _, other := range strings.Fields(expand(o.Value, cmp.Or(name, unit))) {
			switch {
			case strings.Contains(other, "%"):
				in.remarks = append(in.remarks, fmt.Sprintf("%s is not enabled by %s=%s: that specifier is not one of %%n, %%N, %%p, %%i and %%j", unit, o.Name, other))
			case o.Name == "Also":
				in.also = append(in.also, other)
			case name == "":
			case o.Name == "Alias" && other != name:
				in.links = append(in.links, installLink(other, fragment))
			case pulling[o.Name] != "":
				in.links = append(in.links, installLink(other+pulling[o.Name]+"/"+name, fragment))
			}
		}
	}
	return in, nil
}

// options are what [Install] of a definition and its drop-ins sets in the end, as systemctl
// enable reads them: an empty value takes back what came before, of all but Also=
// (unit_file_load, shared/install.c of systemd).
func (l loadPath) options(unit, fragment string) (out []*systemdunit.UnitOption, err error) {
	drops, err := l.installDropIns(unit)
	if err != nil {
		return nil, err
	}
	for i, at := range append([]string{fragment}, drops...) {
		text, err := l.text(at)
		if i > 0 && kind.Absence(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		options, err := systemdunit.DeserializeOptions(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("read definition of %s: %w", unit, err)
		}
		for _, o := range options {
			switch {
			case o.Section != "Install":
			case o.Value == "" && o.Name != "Also":
				out = slices.DeleteFunc(out, func(before *systemdunit.UnitOption) bool { return before.Name == o.Name })
			default:
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// installName is the unit that [Install] speaks of: of a template, its default
// instance, the last that is named; "" if it has none.
func installName(unit string, options []*systemdunit.UnitOption) string {
	if !unitname.IsTemplate(unit) {
		return unit
	}
	for _, o := range slices.Backward(options) {
		if o.Name == "DefaultInstance" {
			ext := path.Ext(unit)
			return strings.TrimSuffix(unit, ext) + expand(o.Value, unit) + ext
		}
	}
	return ""
}

func installLink(name, fragment string) *kind.Change {
	return &kind.Change{Type: ledger.Link, Path: adminDir + "/" + name, Target: fragment}
}
