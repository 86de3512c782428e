package unit

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// enablement plans the links and masks of one unit.
type enablement struct {
	v *kind.View
	t *kind.Task
	u *desired.Unit
	// name is the unit's real one.
	name string
}

func (e *enablement) files() loadPath { return loadPath{e.v} }

// unmask removes a mask that stands in the way of a unit whose definition is
// elsewhere. A mask in place of a file of ours is that file's matter.
func (e *enablement) unmask() error {
	for _, at := range masks(e.u.Name) {
		if e.v.Expected(at) != nil || !e.files().isMask(at) {
			continue
		}
		if err := e.takeAway(at, kind.VerbUnmask, "masked by "+at); err != nil {
			return err
		}
	}
	return nil
}

// plan compares the links that [Install] of a definition asks for with those there are.
func (e *enablement) plan(fragment string) error {
	if e.u.Enablement == desired.AnyEnablement {
		return nil
	}
	links, err := e.links(fragment)
	if err != nil {
		return err
	}
	if e.u.Enablement == desired.Disabled {
		return e.disable(links)
	}
	for _, q := range links {
		if err := e.enable(q); err != nil {
			return err
		}
	}
	return nil
}

func (e *enablement) enable(q *kind.Change) error {
	info, err := e.v.Lstat(q.Path)
	if err != nil {
		return err
	}
	if e.leadsHere(q) {
		return nil
	}
	q.Late = true
	if err := e.v.MayChange(q, info); err != nil {
		return err
	}
	e.t.Changes = append(e.t.Changes, q)
	e.t.Act(kind.VerbEnable, q.Path+" is absent"+q.TakenOver(), kind.DisruptNone)
	return nil
}

// disable takes away every link that starts the unit at boot, whoever made it, and the aliases
// that lead to it, as systemctl disable does. An alias that becomes the name of another unit,
// which is enabled, is that one's matter.
func (e *enablement) disable(links []*kind.Change) error {
	names := map[string]bool{}
	for _, q := range links {
		if !isAlias(q) || e.rival(q.Path) == "" {
			names[q.Path] = true
		}
	}
	above, err := e.v.Listed(adminDir)
	if err != nil && !kind.Absence(err) {
		return err
	}
	for _, dir := range above {
		if pullsIn(dir) {
			names[adminDir+"/"+dir+"/"+e.name] = true
		}
	}
	for _, at := range sorted(names) {
		if err := e.takeAway(at, kind.VerbDisable, at+" is there"); err != nil {
			return err
		}
	}
	return nil
}

// Bars implements kind.Barrer: a mask that unmask would take away does not come back.
func (Kind) Bars(r desired.Resource, name string, was *ledger.Standing) bool {
	return was.Type == ledger.Link && was.Target == noDevice && slices.Contains(masks(r.(*desired.Unit).Name), name)
}

// takeAway plans that a link goes, if there is one, which keeps a unit from being what is wanted.
// One that others made comes back when nothing asks for its absence any more,
// unless it would not outlive a boot.
func (e *enablement) takeAway(at string, verb kind.Verb, reason string) error {
	info, err := e.v.Lstat(at)
	if err != nil || info == nil || e.v.Deletes(at) {
		return err
	}
	q := &kind.Change{Type: ledger.Gone, Path: at}
	if err := e.v.MayChange(q, info); err != nil {
		return err
	}
	kept := e.v.Reclaim(at)
	q.Foreign = (q.Foreign || kept) && !strings.HasPrefix(at, "/run/")
	q.Forget = !q.Foreign && len(q.From) == 0 && e.v.Ledger.Entries[at].Was == nil
	e.t.Changes = append(e.t.Changes, q)
	e.t.Act(verb, reason+q.TakenOver(), kind.DisruptNone)
	return nil
}

// leadsHere says whether a link leads to the unit, or to its definition, or is to do so.
func (e *enablement) leadsHere(q *kind.Change) bool {
	target, err := e.v.Host.Readlink(q.Path)
	if other := e.v.Expected(q.Path); other != nil {
		target, err = other.Target, nil
	}
	return err == nil && slices.Contains([]string{e.name, path.Base(q.Target)}, path.Base(target))
}

// isAlias says whether a link is a name of the unit, and not what makes another pull it in.
func isAlias(q *kind.Change) bool { return path.Dir(q.Path) == adminDir }

// links are those of systemctl enable, but for aliases at which something else stands: it fails
// there, and systemctl disable passes over them.
func (e *enablement) links(fragment string) (out []*kind.Change, err error) {
	wanted, err := e.files().installOf(e.name, fragment)
	if err != nil {
		return nil, err
	}
	e.t.Remarks = append(e.t.Remarks, wanted.remarks...)
	for _, q := range wanted.links {
		what := ""
		if isAlias(q) {
			if what, err = e.inTheWay(q); err != nil {
				return nil, err
			}
		}
		switch {
		case what == "":
			out = append(out, q)
		case e.u.Enablement == desired.Enabled:
			e.t.Remarks = append(e.t.Remarks, fmt.Sprintf("%s is not enabled as %s: there is %s, and systemctl enable would refuse that, too", e.name, q.Path, what))
		}
	}
	return out, nil
}

// inTheWay says what stands at an alias, or is to stand there, and is not the unit's. What
// berth put there for another unit makes way for the link.
func (e *enablement) inTheWay(q *kind.Change) (what string, err error) {
	info, err := e.v.Lstat(q.Path)
	switch {
	case err != nil || e.leadsHere(q):
		return "", err
	case e.v.Expected(q.Path) != nil:
		return "something else that is wanted", nil
	}
	if other := e.rival(q.Path); other != "" {
		return "the name of " + other + ", which is enabled, too", nil
	}
	if info == nil || e.v.Deletes(q.Path) {
		return "", nil
	}
	if e.u.Enablement == desired.Enabled {
		ends, err := e.ends(q.Path)
		if ends || err != nil || e.v.IsAsMade(q.Path, info) {
			return "", err
		}
	}
	return ledger.DescribeType(e.v.Host, q.Path, info), nil
}

// rival is another unit that the state enables and that has an alias, or comes first of those
// that ask for it while none has it; "" for none.
func (e *enablement) rival(at string) string {
	target, _ := e.v.Host.Readlink(at)
	first := ""
	for _, r := range e.v.State.Resources {
		u, ok := r.(*desired.Unit)
		if !ok || u.Enablement != desired.Enabled || u.Name != e.name && !e.asks(u.Name, at) {
			continue
		}
		if u.Name == path.Base(target) {
			first = u.Name
			break
		}
		first = cmp.Or(first, u.Name)
	}
	if first == e.name {
		return ""
	}
	return first
}

// asks says whether [Install] of a unit asks for a name, whoever has it. That it can't be read is
// its own matter.
func (e *enablement) asks(unit, at string) bool {
	fragment, err := e.files().search(unit, false)
	if err != nil {
		return false
	}
	wanted, err := e.files().installOf(unit, fragment)
	return err == nil && slices.ContainsFunc(wanted.links, func(q *kind.Change) bool { return q.Path == at })
}

// ends says whether a link is no name of any unit: it leads to nothing, or to a unit that is to
// be disabled. One that masks leads nowhere, and stays.
func (e *enablement) ends(at string) (bool, error) {
	to, err := e.files().linkAt(at)
	if err != nil || to == "" || to == noDevice {
		return false, err
	}
	if u, ok := e.v.State.Lookup(desired.UnitID(path.Base(to))).(*desired.Unit); ok && u.Enablement == desired.Disabled {
		return true, nil
	}
	there, err := e.files().stands(to)
	return !there, err
}

// takenFor are the names that berth took away for a unit: a mask, and of one that
// is not to start at boot the links that made it.
func takenFor(v *kind.View, u *desired.Unit) (out []string) {
	for name, e := range v.Ledger.Entries {
		if e.Gone() && path.Base(name) == u.Name && (u.Enablement == desired.Disabled || path.Dir(name) == adminDir) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
