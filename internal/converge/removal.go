package converge

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// removals plans the end of what this owner put on the machine and no longer
// wants: deleted, or the original restored. What another owner still wants
// stays; what is no longer as berth made it stays and is reported.
//
// Definitions of units go first: what enables a unit follows from what is left
// of its definition.
func (p *planning) removals(ctx context.Context) error {
	isDefinition := func(name string) bool { return definedBy(name) != "" }
	if err := p.removeUnwanted(ctx, isDefinition); err != nil {
		return err
	}
	p.noteChanges()
	if err := p.removeUnwanted(ctx, func(name string) bool { return !isDefinition(name) }); err != nil {
		return err
	}
	return p.unforgotten(ctx)
}

func (p *planning) removeUnwanted(ctx context.Context, which func(string) bool) error {
	wanted := p.wantedPaths()
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(p.led.Entries))) {
		e := p.led.Entries[path]
		switch {
		case !which(path) || wanted[path] || !slices.Contains(e.Owners, p.st.Owner):
			continue
		case len(e.Owners) > 1:
			p.leave(path)
			continue
		}
		if err := p.remove(ctx, path, e); err != nil {
			return err
		}
	}
	return nil
}

// wantedPaths are all names that the state speaks of, and the parents of each.
func (p *planning) wantedPaths() map[string]bool {
	wanted := map[string]bool{}
	add := func(name string) {
		for ; name != "/" && name != "."; name = path.Dir(name) {
			wanted[name] = true
		}
	}
	for _, r := range p.st.Resources {
		for _, name := range p.pathsOf(r) {
			add(name)
		}
	}
	for _, t := range p.tasks {
		for _, q := range t.puts {
			if !q.forget {
				add(q.path)
			}
		}
	}
	return wanted
}

func (p *planning) pathsOf(r desired.Resource) []string {
	switch r := r.(type) {
	case *desired.File:
		return []string{r.Path}
	case *desired.Directory:
		return []string{r.Path}
	case *desired.Link:
		return []string{r.Path}
	case *desired.ServingCertificate:
		return []string{r.CertFile, r.KeyFile}
	case *desired.Artifact:
		return artifactPaths(r)
	case *desired.ClientCertificate:
		return p.credentialPaths(r)
	case *desired.TrustAnchor:
		return p.anchorPaths(r)
	case *desired.Unit:
		return append(p.takenFor(r), p.enablementPaths(r)...)
	}
	return nil
}

func artifactPaths(a *desired.Artifact) []string {
	var out []string
	for _, f := range a.Files {
		out = append(out, f.Path)
	}
	return out
}

func (p *planning) credentialPaths(c *desired.ClientCertificate) []string {
	out := []string{c.CertDir}
	files, err := p.opt.Issuer.Files(c, Credential{})
	if err != nil {
		return out
	}
	for _, r := range files {
		out = append(out, p.pathsOf(r)...)
	}
	return out
}

func (p *planning) anchorPaths(a *desired.TrustAnchor) []string {
	store, err := p.trustStore()
	if err != nil {
		return nil
	}
	return []string{store.anchors + "/" + a.Name + store.suffix}
}

func (p *planning) enablementPaths(u *desired.Unit) []string {
	if u.Enablement == desired.AnyEnablement {
		return nil // links that are to go are the unit's matter, too
	}
	up := &unitPlan{planning: p, u: u, t: &task{base: &u.Base}}
	if up.locate() != nil {
		return nil
	}
	links, err := up.installLinks()
	if err != nil {
		return nil
	}
	var out []string
	for _, l := range links {
		out = append(out, l.path)
	}
	return out
}

func (p *planning) remove(ctx context.Context, name string, e entry) error {
	t := &task{id: removalID(name, e), base: &desired.Base{}}
	info, err := lstat(p.h, name)
	if err != nil {
		return err
	}
	if done, err := p.undone(e, info); err != nil || done {
		p.vanished = append(p.vanished, name)
		p.distrust(t, name)
		return err
	}
	switch kept := p.keep(name, e, info); {
	case e.Adopted:
		t.kept = append(t.kept, name+" is no longer wanted and is kept: it was there before berth, or before berth lost its ledger")
		p.leave(name)
	case kept != "":
		t.kept = append(t.kept, name+" is no longer wanted and is kept: "+kept)
	case e.Original != "":
		q, err := restore(p.h, e.Original)
		if err != nil {
			return err
		}
		q.seen = info
		t.puts = append(t.puts, q)
		if q.temporary() {
			p.expect(q)
		}
		t.act(VerbRestore, "no longer wanted; the original comes back", DisruptNone)
	default:
		t.puts = append(t.puts, &put{kind: putDelete, path: name, seen: info, forget: true})
		t.act(VerbDelete, "no longer wanted", DisruptNone)
	}
	p.tasks = append(p.tasks, t)
	if len(t.actions) > 0 {
		p.forgetting(t, name)
		if err := p.stopFirst(ctx, t, name); err != nil {
			return err
		}
		p.distrust(&task{id: t.id, base: t.base}, name)
	}
	return nil
}

// undone says whether there is nothing left to take back: the name is gone, or
// its original stands there again.
func (p *planning) undone(e entry, info *host.Info) (bool, error) {
	if info == nil {
		return !e.gone() || e.Original == "", nil
	}
	if e.Original == "" {
		return false, nil
	}
	return restored(p.h, e.Original, info)
}

func removalID(name string, e entry) desired.ID {
	switch {
	case e.Dir:
		return desired.DirectoryID(name)
	case strings.HasPrefix(e.Sum, "link:"):
		return desired.LinkID(name)
	}
	return desired.FileID(name)
}

// keep says why a name is not berth's to remove; "" if it is.
func (p *planning) keep(name string, e entry, info *host.Info) string {
	switch {
	case e.InPlace:
		return keepMode(e, info)
	case e.Dir:
		return p.keepDir(name, info)
	case e.Seed:
		return "it was handed over to its user"
	case strings.HasPrefix(e.Sum, "link:"):
		if target, err := p.h.Readlink(name); err != nil || "link:"+target != e.Sum {
			return "it was changed"
		}
	case e.Sum != "":
		if tok, err := token(p.h, name); err != nil || tok != e.Sum {
			return "its content was changed"
		}
	}
	return ""
}

func keepMode(e entry, info *host.Info) string {
	switch {
	case info.Mode.IsDir() != e.Dir || !e.Dir && !info.IsRegular():
		return "it is something else now"
	case e.Attributes != "" && e.Attributes != attributesText(info.Mode, info.UID, info.GID):
		return "its mode or owner was changed"
	}
	return ""
}

func (p *planning) keepDir(name string, info *host.Info) string {
	if !info.Mode.IsDir() {
		return "it is no directory any more"
	}
	names, err := p.h.ReadDir(name)
	if err != nil {
		return err.Error()
	}
	for _, n := range names {
		if !p.removing(name + "/" + n) {
			return "it is not empty"
		}
	}
	return ""
}

func (p *planning) removing(name string) bool {
	for _, t := range p.tasks {
		for _, q := range t.puts {
			if q.path == name && q.kind == putDelete {
				return true
			}
		}
	}
	return false
}

func isUnitFile(name string) bool {
	switch path.Ext(name) {
	case ".service", ".socket", ".timer", ".mount", ".swap", ".path", ".slice":
		return path.Dir(name) == adminUnits
	}
	return false
}

// stopFirst stops a unit before its definition goes. What becomes of a unit of
// the state is for the state to say.
func (p *planning) stopFirst(ctx context.Context, t *task, file string) error {
	name := path.Base(file)
	if !isUnitFile(file) || p.opt.Offline || p.st.Lookup(desired.UnitID(name)) != nil {
		return nil
	}
	st, err := p.h.Unit(ctx, name)
	if err != nil {
		return err
	}
	if st.ActiveState == "inactive" || st.ActiveState == "failed" {
		return nil
	}
	t.actions[len(t.actions)-1].Disruption = DisruptRestart
	t.before = func(ctx context.Context) error {
		if err := p.h.StopUnit(ctx, name); err != nil {
			return &UnitError{Unit: name, Err: err}
		}
		return nil
	}
	return nil
}
