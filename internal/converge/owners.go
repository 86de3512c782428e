package converge

import (
	"fmt"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/desired"
)

// join enters an owner and says whether it is new.
func (e *entry) join(o desired.Owner) bool {
	if slices.Contains(e.Owners, o) {
		return false
	}
	e.Owners = append(slices.Clone(e.Owners), o)
	slices.Sort(e.Owners)
	return true
}

// owns says whether an owner wants the path.
func (l *ledger) owns(path string, o desired.Owner) bool {
	return slices.Contains(l.Entries[path].Owners, o)
}

// leave notes that this owner wants a name no more which others still want, or
// which was there before it.
func (p *planning) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, name)
}

// book enters in the ledger what needed no change and drops what is gone. Where
// it says all that already, nothing is written; else a journal has begun.
func (a *applying) book(begun bool) (changed bool, err error) {
	entered, err := a.enter()
	if err != nil {
		return false, err
	}
	if dropped := a.forget(); !entered && !dropped {
		return false, nil
	}
	if !begun {
		if err := a.journal().begin(a.h); err != nil {
			return false, err
		}
	}
	for _, name := range a.left {
		if err := a.attribute(name); err != nil {
			return false, err
		}
	}
	return true, a.led.save(a.h)
}

// attribute makes an original that of an owner who is left.
func (a *applying) attribute(name string) error {
	e := a.led.Entries[name]
	if e.Original == "" {
		return nil
	}
	side, err := readSidecar(a.h, e.Original)
	if err != nil {
		return fmt.Errorf("read original: %w", err)
	}
	if slices.Contains(e.Owners, side.Owner) {
		return nil
	}
	side.Owner = e.Owners[0]
	return side.save(a.h, e.Original)
}

// forget drops what is no longer on the machine, or no longer this owner's. Those
// of several owners stay with the others, their originals, too.
func (a *applying) forget() bool {
	names := slices.Clone(a.vanished)
	for _, t := range a.tasks {
		for _, q := range t.puts {
			if q.forget && a.led.ours(q.path) {
				names = append(names, q.path)
			}
		}
	}
	for _, name := range names {
		delete(a.led.Entries, name)
	}
	for _, name := range a.left {
		e := a.led.Entries[name]
		e.Owners = slices.DeleteFunc(slices.Clone(e.Owners), func(o desired.Owner) bool { return o == a.st.Owner })
		a.led.Entries[name] = e
		if len(e.Owners) == 0 {
			delete(a.led.Entries, name) // it was adopted
		}
	}
	return len(names)+len(a.left) > 0
}

// enter makes this owner one of all names of the ledger that are as its state
// wants them, and adopts those that the ledger does not know. It says whether any
// is new.
func (a *applying) enter() (bool, error) {
	changed := false
	for _, r := range a.st.Resources {
		t := a.byID[r.ID()]
		if len(t.deferred) > 0 || !a.judges(r) {
			continue
		}
		for _, name := range a.pathsOf(r) {
			adopted, err := a.adopt(t, r, name)
			if err != nil {
				return false, err
			}
			known := a.complete(t, r, name)
			joined, chosen := a.joinUp(name), a.choose(r, name)
			changed = changed || adopted || known || joined || chosen
		}
	}
	return changed, nil
}

// judges says whether what stands at the resource's names is compared with it: not
// so a seed that is there, or a transient file that has ended.
func (a *applying) judges(r desired.Resource) bool {
	f, ok := r.(*desired.File)
	return !ok || f.Life == desired.Managed || f.Life == desired.Transient && !a.provided(f.Until)
}

// joinUp enters the owner for a name and for the directories above it that berth
// made.
func (a *applying) joinUp(name string) bool {
	joined := false
	for ; name != "/" && name != "."; name = path.Dir(name) {
		if e, ok := a.led.Entries[name]; ok && e.join(a.st.Owner) {
			a.led.Entries[name], joined = e, true
		}
	}
	return joined
}

// choose notes that a directory which was made on the way has a mode that is
// wanted.
func (a *applying) choose(r desired.Resource, name string) bool {
	e := a.led.Entries[name]
	if _, ok := r.(*desired.Directory); !ok || !e.Parent {
		return false
	}
	e.Parent = false
	a.led.Entries[name] = e
	return true
}
