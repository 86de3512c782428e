package converge

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// Inherit enters what another program has made of a state, for the state's owner:
// what stands there counts as put there by berth, with nothing before it, so that it
// goes when nobody wants it any more. It changes nothing but the ledger. An owner of
// whom the ledger knows something inherits nothing; what others own, or were about to
// put in place when they were cut off, is theirs. It returns the ids that were entered.
func (e *Engine) Inherit(ctx context.Context, st *desired.State) (entered []string, err error) {
	err = e.exclusively(ctx, func() error {
		entered, err = e.inherit(ctx, st)
		return err
	})
	return entered, err
}

func (e *Engine) inherit(ctx context.Context, st *desired.State) ([]string, error) {
	led, err := e.ledger.Load(e.opt.Host)
	if err != nil || owns(led, st.Owner) {
		return nil, err
	}
	p, err := e.plan(ctx, st, led, Scope{})
	if err != nil {
		return nil, err
	}
	h := &heir{planner: p, entries: map[string]ledger.Entry{}}
	for _, r := range st.Resources {
		if err := h.take(r); err != nil {
			return nil, err
		}
	}
	if len(h.entries) == 0 {
		return nil, nil
	}
	maps.Copy(led.Entries, h.entries)
	if led.Owed != nil { // it stays so, until a run completes it
		return slices.Sorted(maps.Keys(h.entries)), led.Begin(e.opt.Host, led.Owed)
	}
	return slices.Sorted(maps.Keys(h.entries)), write(p.v)
}

func owns(led *ledger.Ledger, o desired.Owner) bool {
	for _, e := range led.Entries {
		if e.Owns(o) {
			return true
		}
	}
	return false
}

// heir finds what is inherited.
type heir struct {
	*planner
	entries map[string]ledger.Entry
}

func (h *heir) take(r desired.Resource) error {
	for _, name := range h.v.NamesOf(r) {
		if h.v.Ledger.Ours(name) || h.isOwed(name) {
			continue
		}
		if ledger.IsPath(name) {
			if err := h.path(r, name); err != nil {
				return err
			}
		}
	}
	if k, ok := h.v.Kinds[r.Kind()].(kind.Inheriter); ok {
		h.live(k, r)
	}
	return nil
}

// isOwed says whether a run of another owner that was cut off claims an id.
func (h *heir) isOwed(id string) bool {
	owed := h.v.Ledger.Owed
	if owed == nil || owed.Owner == h.v.State.Owner {
		return false
	}
	_, ok := owed.Claims[id]
	return ok
}

// path enters a name. Of a file whose content the state tells, that counts: what
// somebody made of it since is theirs.
func (h *heir) path(r desired.Resource, name string) error {
	info, err := h.v.Lstat(name)
	if err != nil || info == nil || info.Mode.IsDir() {
		return err
	}
	applied, err := h.found(name, info)
	if err != nil {
		return err
	}
	e := ledger.Entry{Owners: map[desired.Owner]string{h.v.State.Owner: h.v.AskedOf(r)}}
	switch q := h.v.Expected(name); {
	case applied.Type == ledger.Link:
	case h.v.IsDownload(name):
		e.Mark = ledger.Mark(info)
	case q != nil && q.Sum() != "":
		*applied = q.Standing()
	}
	e.Applied = *applied
	h.entries[name] = e
	h.dropInDir(name)
	return nil
}

// dropInDir enters the directory of a drop-in: it goes with the last one in it.
func (h *heir) dropInDir(name string) {
	dir := path.Dir(name)
	info, err := h.v.Lstat(dir)
	if !strings.HasSuffix(dir, ".d") || !h.defines(name) || h.v.Ledger.Ours(dir) || err != nil || info == nil {
		return
	}
	h.entries[dir] = ledger.Entry{Owners: map[desired.Owner]string{h.v.State.Owner: ""}, Applied: *ledger.StandingAt(info), Parent: true}
}

// live enters the state of what is no name of the tree.
func (h *heir) live(k kind.Inheriter, r desired.Resource) {
	t := h.v.Task(r.ID())
	i := slices.IndexFunc(t.Claims, func(c kind.Claim) bool { return c.ID == string(r.ID()) })
	if i < 0 || h.v.Ledger.Ours(t.Claims[i].ID) || h.isOwed(t.Claims[i].ID) {
		return
	}
	e := h.v.LiveEntry(t.Claims[i])
	if was, known := k.Before(r, slices.Collect(maps.Keys(h.entries))); known {
		e.Was.Value = was
	}
	h.entries[t.Claims[i].ID] = e
}
