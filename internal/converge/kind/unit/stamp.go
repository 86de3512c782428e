package unit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
)

// stamp says with what a unit was started: it makes a restart that is owed
// observable. It is lost with the boot; State does not count after one of userspace alone.
type stamp struct {
	InvocationID string `json:"invocationID,omitempty"`
	// State is finished for a oneshot service that ran to its end, skipped for a unit
	// whose condition did not hold; "" for what runs.
	State string `json:"state,omitempty"`
	// Userspace is the one that State speaks of, as in ledger.Boot: a restart of userspace
	// alone keeps /run.
	Userspace string `json:"userspace,omitempty"`
	// Definition has a revision for the definition and each drop-in, complete; Triggers
	// for the files that somebody named as a reason to restart, Reloads for those that
	// need a reload only.
	Definition map[string]string `json:"definition"`
	Triggers   map[string]string `json:"triggers,omitempty"`
	Reloads    map[string]string `json:"reloads,omitempty"`
	// Reread is the run of the unit that has reread Reloads as they are here, where nobody knows
	// what it was started with: the stamp says nothing else of that run.
	Reread string `json:"reread,omitempty"`
	// Unread has, by path, the expressions of the text that a revision leaves out. A stamp of
	// an earlier version has none, and does not say what is left out.
	Unread map[string][]string `json:"unread"`
}

const (
	finished = "finished"
	skipped  = "skipped"
)

// revision is what the stamp says of a path; "" for nothing.
func (s *stamp) revision(at string) string {
	return cmp.Or(s.Definition[at], s.Triggers[at], s.Reloads[at])
}

// leaveOut notes the expressions by which the revisions go of what has any.
func (s *stamp) leaveOut(unread func(at string) []string) {
	s.Unread = map[string][]string{}
	for _, part := range []map[string]string{s.Triggers, s.Reloads} {
		for at := range part {
			if expressions := unread(at); len(expressions) > 0 {
				s.Unread[at] = expressions
			}
		}
	}
}

func stampPath(unit string) string { return ledger.StampDir + "/" + unit }

// readStamp returns an empty one where there is none, or a torn one.
func readStamp(h host.FS, unit string) (stamp, error) {
	var s stamp
	data, ok, err := ledger.ReadFile(h, stampPath(unit))
	if err != nil || !ok {
		return s, err
	}
	if json.Unmarshal(data, &s) != nil {
		return stamp{}, nil
	}
	return s, nil
}

// ofThisBoot is the stamp without what it says of an earlier run of userspace.
func (s stamp) ofThisBoot(ctx context.Context, h host.Host) (stamp, error) {
	if s.State == "" || s.Userspace == "" {
		return s, nil
	}
	now, err := ledger.PresentBoot(ctx, h)
	if err == nil && now.Userspace != "" && now.Userspace != s.Userspace {
		return stamp{}, nil
	}
	return s, err
}

func writeStamp(h host.FS, unit string, s stamp) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = host.PrivateDir(h, ledger.StampDir)
	}
	if err == nil {
		err = host.WriteFile(h, stampPath(unit), data, host.Attributes{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("write stamp of %s: %w", unit, err)
	}
	return nil
}

// Learn implements kind.Learner.
func (Kind) Learn(h host.Host, held map[string]ledger.Held) error {
	names, err := h.ReadDir(ledger.StampDir)
	if err != nil {
		return fmt.Errorf("read stamps: %w", err)
	}
	for _, name := range names {
		s, err := readStamp(h, name)
		if err != nil {
			return err
		}
		learned := false
		for _, part := range []map[string]string{s.Definition, s.Triggers, s.Reloads} {
			for at, rev := range part {
				if known, ok := held[at]; ok && rev == unhashed+known.Seen {
					part[at], learned = known.Sum, true
				}
			}
		}
		if !learned {
			continue
		}
		if err := writeStamp(h, name, s); err != nil {
			return err
		}
	}
	return nil
}
