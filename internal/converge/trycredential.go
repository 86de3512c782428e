package converge

import (
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// keepCredentials keeps those of the last good contract that the change replaces, or
// takes away. It comes after the note, so that no key is left behind without a trial.
// What a run before this one has replaced is not worth keeping; what it has kept is kept, since
// one that was cut off may have put another pair in the place of that.
func (t *try) keepCredentials(x *executor) error {
	all, err := trial.Credentials(t.e.opt.Host, t.st.Owner)
	if err != nil {
		return err
	}
	before := len(all)
	for _, r := range t.old.Resources {
		k, ok := t.e.kinds[r.Kind()].(kind.Keeper)
		if !ok {
			continue
		}
		holder, c, err := k.Replaces(x.v, r)
		if err != nil {
			return err
		}
		isKept := slices.ContainsFunc(all, func(c trial.Credential) bool { return c.ID == r.ID() && c.Holder == holder })
		if c != nil && !isKept {
			all = append(all, trial.Credential{ID: r.ID(), Holder: holder, Certificate: c.Certificate, Key: c.Key})
		}
	}
	if len(all) == before {
		return nil
	}
	return trial.KeepCredentials(t.e.opt.Host, t.st.Owner, all)
}

// keptCredentials are those that the way back brings in force again.
func keptCredentials(h host.FS, owner desired.Owner) (map[desired.ID]map[string]kind.Credential, error) {
	all, err := trial.Credentials(h, owner)
	out := map[desired.ID]map[string]kind.Credential{}
	for _, c := range all {
		if out[c.ID] == nil {
			out[c.ID] = map[string]kind.Credential{}
		}
		out[c.ID][c.Holder] = kind.Credential{Certificate: c.Certificate, Key: c.Key}
	}
	return out, err
}
