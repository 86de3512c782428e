package unit

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	systemdunit "github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// unmask removes a mask that stands in the way of a unit whose definition is
// elsewhere. A mask in place of a file of ours is that file's matter.
func (p *planner) unmask() error {
	for _, dir := range dirs[:2] {
		at := dir + "/" + p.u.Name
		if p.Expected(at) != nil || p.Deletes(at) || !p.isMask(at) {
			continue
		}
		info, err := p.Lstat(at)
		if err != nil {
			return err
		}
		if err := p.takeAway(at, info, kind.VerbUnmask, "masked by "+at); err != nil {
			return err
		}
	}
	return nil
}

// enablement compares the links that [Install] asks for with those there are.
func (p *planner) enablement() error {
	if p.u.Enablement == desired.AnyEnablement {
		return nil
	}
	links, err := p.installLinks(p.fragment)
	if err != nil {
		return err
	}
	if p.u.Enablement == desired.Disabled {
		return p.disable(links)
	}
	for _, q := range links {
		if err := p.enable(q); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) enable(q *kind.Change) error {
	info, err := p.Lstat(q.Path)
	if err != nil {
		return err
	}
	if p.leadsHere(q) {
		return nil
	}
	q.Late = true
	if err := p.MayChange(q, info); err != nil {
		return err
	}
	p.t.Changes = append(p.t.Changes, q)
	p.t.Act(kind.VerbEnable, q.Path+" is absent"+q.TakenOver(), kind.DisruptNone)
	return nil
}

// leadsHere says whether a link leads to the unit, or to its definition, or is to do so.
func (p *planner) leadsHere(q *kind.Change) bool {
	target, err := p.Host.Readlink(q.Path)
	if other := p.Expected(q.Path); other != nil {
		target, err = other.Target, nil
	}
	return err == nil && slices.Contains([]string{p.name, path.Base(q.Target)}, path.Base(target))
}

// isAlias says whether a link is a name of the unit, and not what makes another pull it in.
func isAlias(q *kind.Change) bool { return path.Dir(q.Path) == adminDir }

// own leaves out the aliases at which something else stands: systemctl enable fails there, and
// systemctl disable passes over it.
func (p *planner) own(links []*kind.Change) (out []*kind.Change, err error) {
	for _, q := range links {
		what := ""
		if isAlias(q) {
			if what, err = p.inTheWay(q); err != nil {
				return nil, err
			}
		}
		switch {
		case what == "":
			out = append(out, q)
		case p.u.Enablement == desired.Enabled:
			p.t.Remarks = append(p.t.Remarks, fmt.Sprintf("%s is not enabled as %s: there is %s, and systemctl enable would refuse that, too", p.name, q.Path, what))
		}
	}
	return out, nil
}

// inTheWay says what stands at an alias, or is to stand there, and is not the unit's. What
// berth put there for another unit makes way for the link.
func (p *planner) inTheWay(q *kind.Change) (what string, err error) {
	info, err := p.Lstat(q.Path)
	switch {
	case err != nil || p.leadsHere(q):
		return "", err
	case p.Expected(q.Path) != nil:
		return "something else that is wanted", nil
	}
	if other := p.rival(q.Path); other != "" {
		return "the name of " + other + ", which is enabled, too", nil
	}
	if info == nil || p.Deletes(q.Path) {
		return "", nil
	}
	if p.u.Enablement == desired.Enabled {
		ends, err := p.ends(q.Path)
		if ends || err != nil || p.IsAsMade(q.Path, info) {
			return "", err
		}
	}
	return ledger.DescribeType(p.Host, q.Path, info), nil
}

// rival is another unit that the state enables and that has an alias, or comes first of those
// that ask for it while none has it; "" for none.
func (p *planner) rival(at string) string {
	target, _ := p.Host.Readlink(at)
	first := ""
	for _, r := range p.State.Resources {
		u, ok := r.(*desired.Unit)
		if !ok || u.Enablement != desired.Enabled || u.Name != p.name && !slices.Contains(p.aliasesOf(u), at) {
			continue
		}
		if u.Name == path.Base(target) {
			first = u.Name
			break
		}
		first = cmp.Or(first, u.Name)
	}
	if first == p.name {
		return ""
	}
	return first
}

// aliasesOf are the names that [Install] of another unit asks for, whoever has them.
func (p *planner) aliasesOf(u *desired.Unit) (out []string) {
	of := &planner{View: p.View, u: u, t: &kind.Task{Base: &u.Base}, name: u.Name}
	fragment, err := of.search()
	if err != nil {
		return nil // that is its own matter
	}
	links, _, err := of.linksOf(u.Name, fragment)
	if err != nil {
		return nil
	}
	for _, q := range links {
		if isAlias(q) {
			out = append(out, q.Path)
		}
	}
	return out
}

// ends says whether a link is no name of any unit: it leads to nothing, or to a unit that is to
// be disabled. One that masks leads nowhere, and stays.
func (p *planner) ends(at string) (bool, error) {
	target, err := p.Host.Readlink(at)
	if err != nil || target == "/dev/null" {
		return false, nil //nolint:nilerr // it is no link
	}
	if u, ok := p.State.Lookup(desired.UnitID(path.Base(target))).(*desired.Unit); ok && u.Enablement == desired.Disabled {
		return true, nil
	}
	to := p.Real(host.Splice(path.Dir(at), target, ""))
	info, err := p.Lstat(to)
	return p.Deletes(to) || info == nil && p.Expected(to) == nil, err
}

// passesOn says whether a name becomes another unit's, which is enabled.
func (p *planner) passesOn(at string) bool {
	return slices.ContainsFunc(p.State.Resources, func(r desired.Resource) bool {
		u, ok := r.(*desired.Unit)
		return ok && u.Enablement == desired.Enabled && slices.Contains(p.NamesOf(u), at)
	})
}

// disable takes away every link that starts the unit at boot, whoever made it, and the aliases
// that lead to it, as systemctl disable does.
func (p *planner) disable(links []*kind.Change) error {
	names := map[string]bool{}
	for _, q := range links {
		if !isAlias(q) || !p.passesOn(q.Path) {
			names[q.Path] = true
		}
	}
	above, err := p.Listed(adminDir)
	if err != nil && !kind.Absence(err) {
		return err
	}
	for _, dir := range above {
		if pullsIn(dir) {
			names[adminDir+"/"+dir+"/"+p.name] = true
		}
	}
	for _, at := range sorted(names) {
		info, err := p.Lstat(at)
		if err != nil {
			return err
		}
		if info == nil || p.Deletes(at) {
			continue
		}
		if err := p.takeAway(at, info, kind.VerbDisable, at+" is there"); err != nil {
			return err
		}
	}
	return nil
}

// takeAway plans that a link goes which keeps a unit from being what is wanted.
// One that others made comes back when nothing asks for its absence any more,
// unless it would not outlive a boot.
func (p *planner) takeAway(name string, info *host.Info, verb kind.Verb, reason string) error {
	q := &kind.Change{Type: ledger.Gone, Path: name}
	if err := p.MayChange(q, info); err != nil {
		return err
	}
	q.Foreign = q.Foreign && !strings.HasPrefix(name, "/run/")
	q.Forget = !q.Foreign && len(q.From) == 0 && p.Ledger.Entries[name].Was == nil
	p.Reclaim(name)
	p.t.Changes = append(p.t.Changes, q)
	p.t.Act(verb, reason+q.TakenOver(), kind.DisruptNone)
	return nil
}

// installLinks are the links of systemctl enable for a definition, those of the
// units among them that Also= names. Of these, one that is nowhere or masked is left out, as
// systemctl does, and one that the state speaks of is that one's matter. So are aliases left
// out that are not to be had.
func (p *planner) installLinks(fragment string) ([]*kind.Change, error) {
	links, also, err := p.linksOf(p.name, fragment)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{p.name: true}
	for len(also) > 0 {
		name := also[0]
		also = also[1:]
		if seen[name] || p.Task(desired.UnitID(name)) != nil {
			continue
		}
		seen[name] = true
		fragment, err := p.searchFor(name, true)
		if err != nil {
			return nil, err
		}
		more, next, err := p.linksOf(name, fragment)
		if err != nil {
			return nil, err
		}
		links, also = append(links, more...), append(also, next...)
	}
	slices.SortStableFunc(links, func(a, b *kind.Change) int { return strings.Compare(a.Path, b.Path) })
	return p.own(slices.CompactFunc(links, func(a, b *kind.Change) bool { return a.Path == b.Path })) // one may be asked for twice
}

// linksOf are the links that [Install] of one definition and of its drop-ins asks for, and
// the units that it names in Also=.
func (p *planner) linksOf(unit, fragment string) (links []*kind.Change, also []string, err error) {
	unit, fragment, err = p.definedAt(unit, fragment)
	if err != nil || fragment == "" {
		return nil, nil, err
	}
	options, err := p.options(unit, fragment)
	if err != nil {
		return nil, nil, err
	}
	options = installed(options)
	name := installName(unit, options)
	for _, o := range options {
		for _, other := range strings.Fields(expand(o.Value, cmp.Or(name, unit))) {
			switch {
			case strings.Contains(other, "%"):
				p.t.Remarks = append(p.t.Remarks, fmt.Sprintf("%s is not enabled by %s=%s: that specifier is not one of %%n, %%N, %%p, %%i and %%j", unit, o.Name, other))
			case o.Name == "Also":
				also = append(also, other)
			case name == "":
			case o.Name == "Alias" && other != name:
				links = append(links, installLink(other, fragment))
			case pulling[o.Name] != "":
				links = append(links, installLink(other+pulling[o.Name]+"/"+name, fragment))
			}
		}
	}
	return links, also, nil
}

// options are what a definition and its drop-ins set, as systemctl enable reads them.
func (p *planner) options(unit, fragment string) (out []*systemdunit.UnitOption, err error) {
	drops, err := p.installDropIns(unit)
	if err != nil {
		return nil, err
	}
	for i, at := range append([]string{fragment}, drops...) {
		text, err := p.text(at)
		if i > 0 && kind.Absence(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		more, err := systemdunit.DeserializeOptions(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("read definition of %s: %w", unit, err)
		}
		out = append(out, more...)
	}
	return out, nil
}

// installed is what [Install] asks for in the end: an empty value takes back what came before,
// of all but Also= (unit_file_load, shared/install.c of systemd).
func installed(options []*systemdunit.UnitOption) (out []*systemdunit.UnitOption) {
	for _, o := range options {
		switch {
		case o.Section != "Install":
		case o.Value == "" && o.Name != "Also":
			out = slices.DeleteFunc(out, func(before *systemdunit.UnitOption) bool { return before.Name == o.Name })
		default:
			out = append(out, o)
		}
	}
	return out
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

// text is what a path will hold; links are followed.
func (p *planner) text(at string) (string, error) {
	for range maxLinks {
		to, err := p.linkAt(at)
		switch {
		case err != nil || host.InKernelTree(to):
			return "", err
		case to != "":
			at = to
			continue
		}
		if q := p.Expected(at); q != nil && q.Stored == "" {
			return string(q.Content.Data()), nil
		}
		data, err := p.Host.ReadFile(at)
		return string(data), err
	}
	return "", &fs.PathError{Op: "read", Path: at, Err: syscall.ELOOP}
}
