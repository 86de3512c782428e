package converge

import (
	"slices"
	"time"
)

// owed says why a running unit must be restarted; "" if it must not.
func (up *unitPlan) owed() (string, error) {
	want, unknown, err := up.wanted()
	if err != nil {
		return "", err
	}
	if unknown != "" {
		return unknown + " changes", nil
	}
	have, err := readStamp(up.h, up.u.Name)
	if err != nil {
		return "", err
	}
	if have.InvocationID != "" && have.InvocationID == up.status.InvocationID {
		if have.Hash == want {
			return "", nil
		}
		return up.changing("started with another definition or configuration"), nil
	}
	reason, err := up.owedByTime()
	if err == nil && reason == "" && up.status.InvocationID != "" {
		up.adopt(want)
	}
	return reason, err
}

// owedByTime is the rule without a stamp: a file that changes in this plan, or
// changed after the start, means that a restart is owed.
func (up *unitPlan) owedByTime() (string, error) {
	if which := up.changing(""); which != "" {
		return which, nil
	}
	// A daemon reads its files when its process starts, and may be ready much later.
	start := up.status.ExecMainStart
	if start.IsZero() {
		start = up.status.ActiveEnter
	}
	which, err := up.changedSince(start)
	if err != nil || which == "" {
		return "", err
	}
	return which + " changed after the start", nil
}

// changedSince names the input that changed last, if that was after a time.
func (up *unitPlan) changedSince(start time.Time) (string, error) {
	vanished, err := up.vanishedOf(up.u.Name)
	if err != nil {
		return "", err
	}
	which, at, err := newest(up.h, slices.Concat(up.bundle, up.inputs, vanished))
	if err != nil || !at.After(start) {
		return "", err
	}
	return which, nil
}

// changing names the first input that this plan changes.
func (up *unitPlan) changing(otherwise string) string {
	if len(up.gone) > 0 {
		return up.gone[0] + " goes"
	}
	for _, in := range slices.Concat(up.bundle, up.inputs) {
		if up.changes[in] {
			return in + " changes"
		}
	}
	return otherwise
}

// wanted is the hash of the inputs as they will be. Where one can't be known
// before the download, its path is returned.
func (up *unitPlan) wanted() (hash, unknown string, err error) {
	var in []input
	for _, p := range up.inputs {
		q := up.expected(p)
		switch {
		case q != nil && q.prepared:
			return "", p, nil
		case q != nil && q.kind == putLink:
			in = append(in, input{p, q.sum()})
			continue
		case q != nil:
			in = append(in, input{p, q.sum()})
			continue
		case up.deleted[p]:
			in = append(in, input{p, absent})
			continue
		case up.changes[p]:
			return "", p, nil // made in stage: not known yet
		}
		tok, err := up.inputToken(p)
		if err != nil {
			return "", "", err
		}
		in = append(in, input{p, tok})
	}
	return hashInputs(in), "", nil
}

// present is the hash of the inputs as they are.
func (up *unitPlan) present() (string, error) {
	var in []input
	for _, p := range up.inputs {
		tok, err := up.inputToken(p)
		if err != nil {
			return "", err
		}
		in = append(in, input{p, tok})
	}
	return hashInputs(in), nil
}
