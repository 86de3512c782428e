package osc

import (
	"maps"
	"path"
	"slices"
	"strings"

	systemdunit "github.com/coreos/go-systemd/v22/unit"
	"k8s.io/apimachinery/pkg/util/sets"
)

// cycles refuses units of which each needs the next and starts after it, the last
// before the first: systemd starts none of them ("Transaction order is cyclic").
// Where one of them can do without the next systemd leaves that one out, now or at
// boot: that is told. What nobody starts may be as it is.
func (v *validation) cycles() {
	g := orderOf(merge(v.doc.allUnits()))
	g.started = g.startedWith((*unit).runs)
	for _, u := range g.units {
		if way := g.cycle(u.name, g.needs); way != nil {
			v.refuse(u.at, "each starts after the next and needs it, so that systemd starts none: %s", strings.Join(way, ", "))
			return
		}
	}
	g.started = g.startedWith((*unit).enabled)
	for _, u := range g.units {
		if way := g.cycle(u.name, nil); way != nil {
			v.note(u.at, "each starts after the next, so that systemd leaves one out where it starts them together: "+strings.Join(way, ", "))
			return
		}
	}
}

// order is in which order systemd starts the units of a document.
type order struct {
	units []*unit
	// after are the units of the document that each starts after, needs those
	// without which it does not start.
	after, needs map[string]sets.Set[string]
	// started are the units among which a cycle counts.
	started sets.Set[string]
}

func orderOf(units []*unit) *order {
	g := &order{units: units, after: map[string]sets.Set[string]{}, needs: map[string]sets.Set[string]{}}
	for _, u := range units {
		g.after[u.name], g.needs[u.name] = sets.New[string](), sets.New[string]()
	}
	for _, u := range units {
		if u.content != nil {
			g.read(u.name, u.content.text)
		}
		for _, name := range slices.Sorted(maps.Keys(u.dropIns)) {
			if isReadDropIn(name) {
				g.read(u.name, u.dropIns[name].text)
			}
		}
	}
	return g
}

// isReadDropIn says whether systemd reads a drop-in of that name.
func isReadDropIn(name string) bool {
	return path.Ext(name) == ".conf" && !strings.HasPrefix(name, ".")
}

// startedWith are some units, and those that start since they need them.
func (g *order) startedWith(some func(*unit) bool) sets.Set[string] {
	out := sets.New[string]()
	var add func(string)
	add = func(name string) {
		if out.Has(name) {
			return
		}
		out.Insert(name)
		for needed := range g.needs[name] {
			add(needed)
		}
	}
	for _, u := range g.units {
		if some(u) {
			add(u.name)
		}
	}
	return out
}

// read takes what a part of a definition says of order. What is no unit file is
// systemd's to complain of.
func (g *order) read(name, text string) {
	options, err := systemdunit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		return
	}
	for _, o := range options {
		if o.Section != "Unit" {
			continue
		}
		for _, other := range strings.Fields(o.Value) {
			g.relate(name, o.Name, other)
		}
	}
}

func (g *order) relate(name, how, other string) {
	if _, known := g.after[other]; !known || name == other {
		return
	}
	switch how {
	case "After":
		g.after[name].Insert(other)
	case "Before":
		g.after[other].Insert(name)
	case "Requires", "BindsTo", "Requisite":
		g.needs[name].Insert(other)
	}
}

// cycle is the way from a unit back to itself along the order of those that start,
// each step to one that is needed where needs is given; nil if there is none.
func (g *order) cycle(start string, needs map[string]sets.Set[string]) []string {
	var way []string
	seen := sets.New[string]()
	var visit func(string) bool
	visit = func(name string) bool {
		way = append(way, name)
		for _, next := range sets.List(g.after[name]) {
			switch {
			case !g.started.Has(next):
			case needs != nil && !needs[name].Has(next):
			case next == start:
				return true
			case !seen.Has(next):
				seen.Insert(next)
				if visit(next) {
					return true
				}
			}
		}
		way = way[:len(way)-1]
		return false
	}
	if !visit(start) {
		return nil
	}
	return append(way, start)
}
