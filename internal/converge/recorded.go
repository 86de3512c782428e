package converge

import (
	"errors"
	"maps"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
)

// haveRead takes out of what the run owes what it has done when all is live: the next one would
// have systemd read definitions again. What units that failed are owed can be observed.
func (x *record) haveRead() error {
	x.run.Definitions, x.run.Revive, x.run.Boot = nil, nil, ledger.Boot{}
	return x.v.Ledger.Begin(x.v.Host, x.run)
}

// learn enters what was there before, where a task has seen it since the run began. It says
// whether there is such a thing.
func (x *record) learn(t *kind.Task) (learnt bool) {
	for _, c := range t.Claims {
		had := x.run.Claims[c.ID].Entry.Was
		if c.Again && (had == nil || had.Value != c.Was) {
			x.run.Claims[c.ID], learnt = ledger.Claim{Entry: x.v.LiveEntry(c)}, true
		}
	}
	return learnt
}

// resync makes durable what a run that was cut off left in place, or what was taken away of
// it: this one finds it as it is wanted and would not write it again.
func (x *record) resync() error {
	names := x.wanted()
	for _, name := range slices.AppendSeq(slices.Concat(x.v.Ledger.Owed.Drops, x.v.Ledger.Owed.Temps), maps.Keys(x.v.Ledger.Entries)) {
		names[name] = true
	}
	names[ledger.OriginalsDir+"/x"] = true
	dirs := map[string]bool{}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !ledger.IsPath(name) {
			continue
		}
		if info, err := x.v.Lstat(path.Dir(name)); err == nil && info != nil && info.Mode.IsDir() {
			dirs[path.Dir(name)] = true
		}
		switch info, err := x.v.Lstat(name); {
		case err != nil || info == nil:
		case info.Mode.IsDir():
			dirs[name] = true
		case info.IsRegular():
			files = append(files, name)
		}
	}
	return errors.Join(x.syncDirs(dirs), x.syncEach(files, x.v.Host.SyncFile))
}

// idle is the bookkeeping of a run that had nothing to do.
func (x *record) idle() error {
	owed := x.v.Ledger.Owed
	entered, err := x.enter()
	if err != nil {
		return err
	}
	run := x.newRun()
	same := !entered && owed == nil && len(run.Drops)+len(run.Leaves)+len(run.Claims) == 0
	if err := x.finalize(); err != nil || same {
		return err
	}
	x.v.Ledger.Enter(run)
	if err := x.complete(); err != nil {
		return err
	}
	return write(x.v)
}

// finish ends a run that changed something.
func (x *record) finish() error {
	if err := x.finalize(); err != nil {
		return err
	}
	x.v.Ledger.Enter(x.run)
	if err := x.complete(); err != nil {
		return err
	}
	seen, err := x.seen()
	if err != nil {
		return err
	}
	return x.v.Ledger.Done(x.v.Host, x.run, seen)
}

// seen is the identity of each download that this run gave its name. Copies of another
// root, such as an image, are other files: of those nothing is said.
func (x *record) seen() (map[string]string, error) {
	out := map[string]string{}
	for name, c := range x.run.Claims {
		if !c.Prepared || x.opt.Offline {
			continue
		}
		info, err := x.v.Lstat(name)
		if err != nil {
			return nil, err
		}
		out[name] = ledger.Seen(info)
	}
	return out, nil
}

func (x *record) finalize() error {
	for _, t := range x.v.Tasks() {
		if t.Finalize == nil {
			continue
		}
		if err := t.Finalize(); err != nil {
			return err
		}
	}
	return nil
}

// complete puts originals in order, and what a run before this one owed.
func (x *record) complete() error {
	if owed := x.v.Ledger.Owed; owed != nil {
		for _, k := range having[kind.Resumer](x.v.Kinds) {
			if err := k.Resume(x.v, owed.Regenerated); err != nil {
				return err
			}
		}
	}
	return x.v.Ledger.Sweep(x.v.Host)
}
