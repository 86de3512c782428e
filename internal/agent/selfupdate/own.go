package selfupdate

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
)

// Own is what this agent's own link, unit and drop-ins are to be; nil where that is
// nobody's to say: something is on trial, or they are somebody else's.
func (u *Updater) Own() (*desired.State, error) {
	if n, err := trial.Load(u.o.Host); n != nil || err != nil {
		return nil, nil //nolint:nilerr // a run ends a note that says nothing
	}
	good, err := trial.Good(u.o.Host, desired.OwnerBerth)
	if err != nil {
		return nil, err
	}
	if good != nil {
		if v, ok := parse(good.Document); ok && !v.Foreign {
			return v.state(u.o.Host, desired.AnyActivation)
		}
		return nil, nil
	}
	return u.setUp()
}

// setUp is what made this agent a service, where the machine's ledger says that it did.
func (u *Updater) setUp() (*desired.State, error) {
	st, err := u.o.Setup(Called(u.o.Program))
	if err != nil {
		return nil, err
	}
	led, err := u.o.Ledger.Load(u.o.Host)
	if err != nil {
		return nil, err
	}
	file, ok := st.Lookup(desired.FileID(unitFile)).(*desired.File)
	e := led.Entries[unitFile]
	if !ok || !e.Owns(desired.OwnerBerth) || e.Applied.Sum != file.Content.Sum() {
		return nil, nil
	}
	out := &desired.State{Owner: st.Owner}
	for _, r := range st.Resources {
		if unit, ok := r.(*desired.Unit); ok && unit.Name == config.Unit {
			still := *unit
			still.Activation = desired.AnyActivation // it would cut itself off
			r = &still
		}
		out.Add(r)
	}
	return out, out.Seal()
}

// OwnIDs are those of an own state that are kept up: its copies of the program stay as
// they are, and nobody could bring one back.
func OwnIDs(st *desired.State) []desired.ID {
	var out []desired.ID
	for _, r := range st.Resources {
		switch r := r.(type) {
		case *desired.Link, *desired.File:
			out = append(out, r.ID())
		case *desired.Unit:
			if r.Name == config.Unit {
				out = append(out, r.ID())
			}
		}
	}
	slices.Sort(out)
	return out
}

// Repair brings back what a scope of an own state says.
func (u *Updater) Repair(ctx context.Context, st *desired.State, s converge.Scope) (*converge.Result, error) {
	return u.o.Engine(nil, "", 0).ApplyScope(ctx, st, s)
}
