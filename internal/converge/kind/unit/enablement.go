package unit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	systemdunit "github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
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
	if target, err := p.Host.Readlink(q.Path); err == nil && slices.Contains([]string{p.name, path.Base(q.Target)}, path.Base(target)) {
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

// disable takes away every link that starts the unit at boot, whoever made it, as
// systemctl disable does.
func (p *planner) disable(links []*kind.Change) error {
	names := map[string]bool{}
	for _, q := range links {
		names[q.Path] = true
	}
	above, err := p.Host.ReadDir(adminDir)
	if err != nil && !kind.Absence(err) {
		return err
	}
	for _, dir := range above {
		if strings.HasSuffix(dir, ".wants") || strings.HasSuffix(dir, ".requires") {
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
	p.t.Changes = append(p.t.Changes, q)
	p.t.Act(verb, reason+q.TakenOver(), kind.DisruptNone)
	return nil
}

// installLinks are the links of systemctl enable for a definition.
func (p *planner) installLinks(fragment string) ([]*kind.Change, error) {
	text, err := p.text(fragment)
	if err != nil {
		return nil, err
	}
	options, err := systemdunit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read definition of %s: %w", p.u.Name, err)
	}
	name := p.installName(options)
	if name == "" {
		return nil, nil
	}
	suffix := map[string]string{"WantedBy": ".wants/", "RequiredBy": ".requires/"}
	var out []*kind.Change
	for _, o := range options {
		if o.Section != "Install" {
			continue
		}
		for _, other := range strings.Fields(expand(o.Value, name)) {
			switch {
			case o.Name == "Alias" && other != name:
				out = append(out, p.installLink(other, fragment))
			case suffix[o.Name] != "":
				out = append(out, p.installLink(other+suffix[o.Name]+name, fragment))
			}
		}
	}
	return out, nil
}

// installName is the unit that [Install] speaks of: of a template, its default
// instance; "" if it has none.
func (p *planner) installName(options []*systemdunit.UnitOption) string {
	if !isTemplate(p.name) {
		return p.name
	}
	for _, o := range options {
		if o.Section == "Install" && o.Name == "DefaultInstance" && o.Value != "" {
			ext := path.Ext(p.name)
			return strings.TrimSuffix(p.name, ext) + expand(o.Value, p.name) + ext
		}
	}
	return ""
}

func (p *planner) installLink(name, fragment string) *kind.Change {
	return &kind.Change{Type: ledger.Link, Path: adminDir + "/" + name, Target: fragment}
}

// text is a definition as it will be.
func (p *planner) text(fragment string) (string, error) {
	if fragment == "" {
		return "", nil
	}
	if q := p.Expected(fragment); q != nil && q.Stored == "" {
		return string(q.Content.Data()), nil
	}
	data, err := p.Host.ReadFile(fragment)
	return string(data), err
}
