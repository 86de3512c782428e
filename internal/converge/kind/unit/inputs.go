package unit

import (
	"maps"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// inputs are the files that a unit runs with: what it was started with as far as berth noted
// it, and what it will be started with.
type inputs struct {
	v *kind.View
	u *desired.Unit
	// definition is as it will be; gone are paths that are no part of it any more.
	definition definition
	gone       []string
	// triggers are what a unit reads when it starts, reloads what it rereads while it runs,
	// bundles what the system makes of CA certificates that are triggers.
	triggers, reloads, bundles []string
	// last is what the unit was started with.
	last stamp
}

// collect finds triggers: the files that somebody named, and what a program reads
// once, when it starts, of what the unit comes after: CA certificates and the
// credential that berth obtained.
func (in *inputs) collect() {
	for _, at := range in.u.Triggers {
		in.triggers = append(in.triggers, in.v.Real(at))
	}
	for _, at := range in.u.ReloadTriggers {
		in.reloads = append(in.reloads, in.v.Real(at))
	}
	for _, id := range in.u.After {
		files, regenerated := in.v.InputsOf(id)
		in.triggers, in.bundles = append(in.triggers, files...), append(in.bundles, regenerated...)
	}
	slices.Sort(in.triggers)
	in.triggers = slices.Compact(in.triggers)
}

// started are all files that a unit reads when it starts.
func (in *inputs) started() []string {
	return slices.Concat(in.bundles, in.definition.paths(), in.triggers)
}

// changing names the first of these that this plan changes.
func (in *inputs) changing() string {
	if len(in.gone) > 0 {
		return because(in.gone[0], "goes")
	}
	for _, at := range in.started() {
		if in.v.Changes(at) && !in.immaterial(at) {
			return because(at, "changes")
		}
	}
	return ""
}

// changed says how a path differs from what the stamp has of it; "" of none.
func (in *inputs) changed(at string) string {
	if in.v.Changes(at) {
		return because(at, "changes")
	}
	return because(at, "is not what it was started with")
}

func because(at, what string) string {
	if at == "" {
		return ""
	}
	return at + " " + what
}

// differing names the first of some paths at which something else will be than the unit was
// started with. One of which the stamp does not speak differs if this plan changes it.
func (in *inputs) differing(paths []string, last, want map[string]string) string {
	for _, at := range paths {
		old, known := last[at]
		rev, ok := want[at]
		if !in.v.Withheld(at) && (!ok || known && old != rev || !known && in.v.Changes(at)) {
			return at
		}
	}
	return ""
}

// redefined compares the definition with the stamp's, also with that of an earlier
// run of the unit; "" where there is none.
func (in *inputs) redefined(want map[string]string) string {
	if len(in.last.Definition) == 0 {
		return ""
	}
	for _, at := range in.definition.paths() {
		old, known := in.last.Definition[at]
		switch {
		case in.v.Withheld(at):
		case !known:
			return because(at, "is new")
		case old != want[at]:
			return in.changed(at)
		}
	}
	for _, at := range sorted(in.last.Definition) {
		if _, ok := want[at]; !ok && !in.v.Withheld(at) {
			return because(at, "goes")
		}
	}
	return ""
}

// stampOf is a stamp of some files with what rev says of each; it leaves out of which nothing is
// known.
func (in *inputs) stampOf(definition, triggers, reloads []string, rev func(at string) (string, bool, error)) (s stamp, err error) {
	for _, part := range []struct {
		into *map[string]string
		of   []string
	}{{&s.Definition, definition}, {&s.Triggers, triggers}, {&s.Reloads, reloads}} {
		*part.into = map[string]string{}
		for _, at := range part.of {
			known, ok, err := rev(at)
			if err != nil {
				return s, err
			}
			if ok {
				(*part.into)[at] = known
			}
		}
	}
	s.leaveOut(in.unread)
	return s, nil
}

// present is what the unit is started with now: a definition as systemd has it, and the
// triggers of all who named any.
func (in *inputs) present(d definition) (stamp, error) {
	anew := in.anew()
	return anew.stampOf(d.paths(), append(sorted(in.last.Triggers), in.triggers...), append(sorted(in.last.Reloads), in.reloads...), anew.revision)
}

// anew are the inputs for a new stamp.
func (in inputs) anew() *inputs {
	in.last = stamp{Unread: in.last.Unread}
	return &in
}

// extended is the last stamp with what is now at triggers that somebody names for the first
// time: from now on their change shows. added is false where there are none.
func (in *inputs) extended() (s stamp, added bool, err error) {
	unknown := func(paths []string, known map[string]string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(at string) bool { _, ok := known[at]; return ok })
	}
	triggers, reloads := unknown(in.triggers, in.last.Triggers), unknown(in.reloads, in.last.Reloads)
	if len(triggers)+len(reloads) == 0 {
		return in.last, false, nil
	}
	more, err := in.stampOf(nil, triggers, reloads, in.revision) // new to the stamp
	maps.Copy(more.Triggers, in.last.Triggers)
	maps.Copy(more.Reloads, in.last.Reloads)
	s = in.last
	s.Triggers, s.Reloads = more.Triggers, more.Reloads
	s.leaveOut(in.unread)
	return s, true, err
}
