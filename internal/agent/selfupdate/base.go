package selfupdate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// base is the version in force, and whether the engine knows it; nil where this
// machine's agent is no service that could be replaced.
func (u *Updater) base(p *Parts) (v *version, kept bool, err error) {
	text, err := u.o.Host.ReadFile(unitFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the agent's unit: %w", err)
	}
	good, err := trial.Good(u.o.Host, desired.OwnerBerth)
	if err != nil {
		return nil, false, err
	}
	if good != nil {
		v, kept = parse(good.Document)
	}
	if !kept {
		if v, err = u.found(p, string(text)); err != nil {
			return nil, false, err
		}
	}
	if v.Program != "" {
		return v, kept, nil
	}
	// A document may have a program for where the one in force stood for itself.
	was := v.Copy
	if v.Program, v.Copy, err = u.locate(p, v); err != nil {
		return nil, false, err
	}
	return v, kept && v.Program == "" && v.Copy == was, nil
}

// found is the version in force as the machine shows it, but for its program.
func (u *Updater) found(p *Parts, unit string) (*version, error) {
	info, err := u.o.Host.Lstat(unitFile)
	if err != nil {
		return nil, fmt.Errorf("look at the agent's unit: %w", err)
	}
	v := &version{Unit: unit, Mode: uint32(info.Mode.Perm()), DropIns: map[string]string{}}
	have := func(name, text string) {
		if is, ok, err := ledger.ReadFile(u.o.Host, path.Join(dropInDir, name)); err == nil && ok && string(is) == text {
			v.DropIns[name] = text
		}
	}
	have(notifyingName, notifying)
	for name, text := range p.DropIns {
		have(name, text)
	}
	return v, nil
}

// locate says where the program that runs is called, and where it is kept: that of a
// version's own, that of a file which gives its path to a link, or that of a program
// which berth put on the machine and which stays as it is.
func (u *Updater) locate(p *Parts, v *version) (program, kept string, err error) {
	paths := []string{called(v.Unit, v.DropIns)}
	if p.Program != nil {
		paths = append(paths, p.Program.Path)
	}
	for _, at := range paths {
		if to := linked(u.o.Host, at); at != "" && to != at && Called(to) == at && sameFile(u.o.Host, to, linked(u.o.Host, u.o.Program)) {
			return at, to, nil
		}
	}
	if p.Program != nil && sameFile(u.o.Host, p.Program.Path, u.o.Program) {
		sum, err := digest(u.o.Host, u.o.Program)
		if err != nil {
			return "", "", err
		}
		return p.Program.Path, copyPath(p.Program.Path, hex.EncodeToString(sum[:8])), nil
	}
	own, err := u.claimed()
	return "", own, err
}

// claimed is the program that runs, where it is the service's own; "" is somebody
// else's.
func (u *Updater) claimed() (string, error) {
	led, err := u.o.Ledger.Load(u.o.Host)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(led.Entries)) {
		if led.Entries[name].Owns(desired.OwnerBerth) && led.Made(name) && sameFile(u.o.Host, name, u.o.Program) {
			return name, nil
		}
	}
	return "", nil
}

// Claim makes the agent's unit and program berth's own where a document of the machine
// put them there, before the agent leaves itself out of that document.
func (u *Updater) Claim(ctx context.Context, p *Parts) error {
	if p == nil {
		return nil
	}
	led, err := u.o.Ledger.Load(u.o.Host)
	if err != nil {
		return err
	}
	if _, ok := led.Entries[unitFile].Owners[desired.OwnerOSC]; !ok {
		return nil
	}
	base, kept, err := u.base(p)
	if err != nil || base == nil {
		return err
	}
	return u.fetch(ctx, &change{p: &Parts{}, base: base, kept: kept})
}

// version is what a document makes of the version in force, if its program is berth.
func (p *Parts) version(base *version) *version {
	v := &version{Program: base.Program, Copy: base.Copy, Before: base.Copy, Unit: base.Unit, Mode: base.Mode, DropIns: map[string]string{}}
	if p.Program != nil {
		v.Program, v.Copy = p.Program.Path, p.Program.copyPath()
	}
	if p.Unit != "" {
		v.Unit, v.Mode = p.Unit, unitMode
		v.DropIns[notifyingName] = notifying
	} else if text, ok := base.DropIns[notifyingName]; ok {
		v.DropIns[notifyingName] = text
	}
	maps.Copy(v.DropIns, p.DropIns)
	return v
}

// foreign is the version with a program that is not berth.
func (v *version) foreign() *version {
	out := *v
	out.Foreign, out.DropIns = true, maps.Clone(v.DropIns)
	if out.DropIns[notifyingName] == notifying {
		delete(out.DropIns, notifyingName)
	}
	return &out
}

// InForce says whether a text is the definition of an agent that is berth and came out
// of a document.
func InForce(h host.FS, definition string) bool {
	good, err := trial.Good(h, desired.OwnerBerth)
	if err != nil || good == nil {
		return false
	}
	v, ok := parse(good.Document)
	return ok && !v.Foreign && v.Unit == definition
}

// Forget ends what is known of updates, and a trial that goes on: the agent becomes
// something else by a person's word.
func Forget(ctx context.Context, h host.Host) error {
	n, err := trial.Load(h)
	if _, torn := errors.AsType[*trial.TornError](err); torn {
		n, err = &trial.Note{Owner: desired.OwnerBerth}, nil
	}
	if err != nil {
		return err
	}
	if n != nil && n.Owner == desired.OwnerBerth {
		if err := trial.Disarm(ctx, h, n); err != nil {
			return err
		}
	}
	if err := trial.Forget(h, desired.OwnerBerth); err != nil {
		return err
	}
	return record{}.save(h)
}

// steady is how long a program that can't speak for itself must have been up.
const steady = 5 * time.Second

// TimeIsOver is to be called when the time of a trial is over. It says whether what is
// on trial is good, since it can't say so itself; else it has failed, also where the run
// that put it in place did not come to note that.
func TimeIsOver(ctx context.Context, h host.Host) (good bool, err error) {
	if good, err = Stays(ctx, h); good {
		return good, err
	}
	n, failed := trial.Load(h)
	if failed != nil || n == nil || n.Owner != desired.OwnerBerth || !n.Waiting {
		return false, errors.Join(err, failed)
	}
	if here, failed := n.IsPresent(ctx, h); failed != nil || !here {
		return false, errors.Join(err, failed)
	}
	m, failed := load(h)
	if failed == nil && m.Tried != "" {
		m.Started = true
		failed = m.save(h)
	}
	return false, errors.Join(err, failed)
}

// Stays says whether what is on trial is an agent that is not berth, and stays up while
// it is looked at: that is all the proof that it can give.
func Stays(ctx context.Context, h host.Host) (bool, error) {
	n, err := trial.Load(h)
	if err != nil || n == nil || n.Owner != desired.OwnerBerth || !n.Waiting {
		return false, err
	}
	tried, err := trial.Tried(h, desired.OwnerBerth)
	if err != nil || tried == nil {
		return false, err
	}
	if v, ok := parse(tried.Document); !ok || !v.Foreign {
		return false, nil
	}
	was, err := h.Unit(ctx, config.Unit)
	if err == nil {
		err = h.Sleep(ctx, steady)
	}
	if err != nil {
		return false, err
	}
	st, err := h.Unit(ctx, config.Unit)
	return err == nil && st.ActiveState == "active" && st.NRestarts == 0 && st.InvocationID == was.InvocationID, err
}
