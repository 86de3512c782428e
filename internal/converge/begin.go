package converge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// record is what the ledger says of a run: what it is about to do, and in the end what it has done.
type record struct {
	*planner
	// run is nil as long as nothing is written.
	run *ledger.Run
}

// begin keeps originals and writes in the ledger what this run is about to do,
// before anything else is written.
func (x *record) begin(ctx context.Context) (err error) {
	for _, dir := range []string{paths.StateDir, ledger.OriginalsDir, ledger.StampDir} {
		if err := host.PrivateDir(x.v.Host, dir); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	x.run = x.newRun()
	if len(x.run.Definitions)+len(x.run.Revive) > 0 {
		if x.run.Boot, err = ledger.PresentBoot(ctx, x.v.Host); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	if x.replacesForeign() {
		if err := x.v.Ledger.Exist(x.v.Host); err != nil {
			return err
		}
	}
	if err := x.keep(); err != nil {
		return err
	}
	if _, err := x.enter(); err != nil {
		return err
	}
	return x.v.Ledger.Begin(x.v.Host, x.run)
}

func (x *record) replacesForeign() bool {
	return slices.ContainsFunc(x.v.Tasks(), func(t *kind.Task) bool {
		return slices.ContainsFunc(t.Changes, func(q *kind.Change) bool { return q.Foreign && !q.Forget && !q.Unclaimed })
	})
}

// newRun is what the plan is about to do, claims of names apart.
func (x *record) newRun() *ledger.Run {
	r := &ledger.Run{ID: runID(x.v), Owner: x.v.State.Owner, Claims: map[string]ledger.Claim{}, Drops: slices.Clone(x.v.Vanished())}
	if owed := x.v.Ledger.Owed; owed != nil {
		r.Regenerated = append(r.Regenerated, owed.Regenerated...)
		for _, k := range having[kind.Resumer](x.v.Kinds) {
			for _, id := range k.Unresumed(x.v, owed.Regenerated) {
				r.Claims[id] = ledger.Claim{Entry: x.v.Ledger.Entries[id].Unasked()}
			}
		}
	}
	for _, t := range x.v.Tasks() {
		r.Drops, r.Leaves = append(r.Drops, t.Forget...), append(r.Leaves, t.Leaves...)
		for _, c := range t.Claims {
			r.Claims[c.ID] = ledger.Claim{Entry: x.v.LiveEntry(c)}
		}
		for _, q := range t.Changes {
			if q.Temporary() || q.Type == ledger.Gone || q.OverFile() {
				r.Temps = append(r.Temps, q.Path)
			}
			if q.Forget && x.v.Ledger.Ours(q.Path) {
				r.Drops = append(r.Drops, q.Path)
			}
		}
		r.Temps = append(append(r.Temps, t.Rewrites...), t.Regenerated...)
		r.Regenerated = append(r.Regenerated, t.Regenerated...)
		r.Definitions, r.Revive = append(r.Definitions, t.Definitions...), append(r.Revive, t.Revive...)
	}
	for _, names := range []*[]string{&r.Drops, &r.Leaves, &r.Temps, &r.Regenerated, &r.Definitions, &r.Revive} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return r
}

// runID tells runs apart: the time, and chance where the clock was set back.
func runID(v *kind.View) string {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%d-%s", v.Host.Now().UnixMicro(), hex.EncodeToString(b[:]))
}

// write makes the ledger durable as it is, beside what a run does. A run that is killed before
// leaves the next one to write it.
func write(v *kind.View) error {
	note := &ledger.Run{ID: runID(v), Owner: v.State.Owner}
	if err := v.Ledger.Begin(v.Host, note); err != nil {
		return err
	}
	return v.Ledger.Done(v.Host, note, nil)
}

// keep stores what is foreign and claims every name that changes.
func (x *record) keep() error {
	g := errgroup.Group{}
	g.SetLimit(x.opt.Workers)
	var mu sync.Mutex
	kept := false
	for _, t := range x.v.Tasks() {
		for _, q := range t.Changes {
			if q.Forget || q.Unclaimed || x.isOwnMode(q) {
				continue
			}
			kept = kept || q.Foreign
			g.Go(func() error {
				return Safely(func() error {
					c, err := x.claim(q)
					if err != nil {
						return t.Failed(err)
					}
					mu.Lock()
					defer mu.Unlock()
					x.run.Claims[q.Path] = c
					return nil
				})
			})
		}
	}
	if err := g.Wait(); err != nil || !kept {
		return err
	}
	return x.v.Ledger.SyncOriginals(x.v.Host)
}

// isOwnMode says that a change repairs mode and owner of what is berth's as a
// whole: the ledger says so already.
func (x *record) isOwnMode(q *kind.Change) bool {
	return q.Type == ledger.Attributes && !q.Foreign && !x.v.Ledger.Entries[q.Path].InPlace()
}

// claim keeps the original of a foreign name, and is the name's entry as it will
// be.
func (x *record) claim(q *kind.Change) (ledger.Claim, error) {
	var was *ledger.Standing
	if q.Foreign {
		was = x.v.Original(q)
		if err := x.v.Ledger.Keep(x.v.Host, q.Path, q.Seen, was, x.v.State.Owner, q.Prepared, q.Original); err != nil {
			return ledger.Claim{}, err
		}
	}
	return ledger.Claim{Entry: x.v.Entry(q, was), Seen: ledger.Seen(q.Seen), Prepared: q.Prepared}, nil
}

// mark notes the fingerprints of downloads that are about to get their names.
func (x *record) mark() error {
	marked := false
	for _, t := range x.v.Tasks() {
		for _, q := range t.Changes {
			c, ok := x.run.Claims[q.Path]
			if !ok || !q.Prepared {
				continue
			}
			info, err := x.v.Lstat(host.TempName(q.Path))
			if err != nil {
				return err
			}
			if info != nil {
				c.Entry.Mark, marked = ledger.Mark(info), true
				x.run.Claims[q.Path] = c
			}
		}
	}
	if !marked {
		return nil
	}
	return x.v.Ledger.Begin(x.v.Host, x.run)
}

// enter makes this owner one of all names of the ledger that are as its state
// wants them, and adopts those that the ledger does not know. It says whether any
// is new.
func (x *record) enter() (bool, error) {
	changed := false
	for _, r := range x.v.Covered() {
		t := x.v.Task(r.ID())
		if s, ok := x.v.Kinds[r.Kind()].(kind.Exempter); len(t.Deferred) > 0 || t.Withheld || ok && s.Exempt(x.v, r) {
			continue
		}
		for _, dir := range x.v.DirsOf(r) {
			changed = x.joinUp(dir) || changed
		}
		for _, name := range x.v.NamesOf(r) {
			if !ledger.IsPath(name) {
				continue
			}
			if t.ChangesName(name) {
				changed = x.joinUp(path.Dir(name)) || changed
				continue
			}
			new, err := x.enterOne(r, name)
			if err != nil {
				return false, err
			}
			changed = changed || new
		}
	}
	return changed, nil
}

func (x *record) enterOne(r desired.Resource, name string) (bool, error) {
	adopted, err := x.adopt(name)
	if err != nil {
		return false, err
	}
	known := x.complement(name)
	joined, above := x.join(name, x.v.AskedOf(r)), x.joinUp(path.Dir(name))
	return adopted || known || joined || above, nil
}

// adopt enters a name that is as wanted and that nobody has entered: it is whose it was,
// or berth's where the file itself tells that berth wrote it.
func (x *record) adopt(name string) (bool, error) {
	if x.v.Ledger.Ours(name) {
		return false, nil
	}
	info, err := x.v.Lstat(name)
	if err != nil || info == nil {
		return false, err
	}
	wrote, err := x.v.Wrote(name, info)
	if err != nil {
		return false, err
	}
	applied, err := x.found(name, info)
	if err != nil {
		return false, err
	}
	if q := x.v.Expected(name); q != nil && applied.Type != ledger.Link {
		if applied.Sum = q.Sum(); wrote {
			*applied = q.Standing()
		}
	}
	x.v.Ledger.Entries[name] = ledger.Entry{Adopted: !wrote, Applied: *applied}
	return true, nil
}

// found is what stands at a name: of a link, where it leads.
func (p *planner) found(name string, info *host.Info) (*ledger.Standing, error) {
	if info.Mode&fs.ModeSymlink == 0 {
		return ledger.StandingAt(info), nil
	}
	target, err := p.v.Host.Readlink(name)
	return &ledger.Standing{Type: ledger.Link, Target: target}, err
}

// complement notes what a name holds of which the ledger does not tell, or no
// longer: it came back from a lost one, or somebody else made it what is wanted now.
func (x *record) complement(name string) bool {
	e, ok := x.v.Ledger.Entries[name]
	q := x.v.Expected(name)
	if !ok || q == nil || q.Sum() == "" || e.Applied.Type != ledger.File {
		return false
	}
	lost := e.Applied.Sum == "" && e.Applied.Mode == 0
	alone := !e.Adopted && len(e.Others(x.v.State.Owner)) == 0
	if !lost && (!alone || e.Applied.Sum == "" || e.Applied.Sum == q.Sum()) {
		return false
	}
	e.Applied = q.Standing()
	x.v.Ledger.Entries[name] = e
	return true
}

// joinUp enters the owner for the directories that berth made, from one upwards.
func (x *record) joinUp(dir string) bool {
	joined := false
	for ; dir != "/" && dir != "."; dir = path.Dir(dir) {
		if e, ok := x.v.Ledger.Entries[dir]; ok && !e.InPlace() {
			joined = x.join(dir, "") || joined
		}
	}
	return joined
}

// join enters the owner for a name that the ledger knows. A directory which was made on the way
// has then a mode that is wanted, if one is asked for.
func (x *record) join(name, asked string) bool {
	e, ok := x.v.Ledger.Entries[name]
	if !ok {
		return false
	}
	chosen := e.Parent && asked != ""
	if have, owns := e.Owners[x.v.State.Owner]; owns && asked == "" {
		asked = have
	}
	e, joined := e.Join(x.v.State.Owner, asked)
	if joined = joined || chosen; joined {
		e.Parent = e.Parent && !chosen
		x.v.Ledger.Entries[name] = e
	}
	return joined
}
