package unit

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// stamp says with what a unit was started: it makes a restart that is owed
// observable. It is lost with the boot.
type stamp struct {
	InvocationID string `json:"invocationID,omitempty"`
	// State is finished for a oneshot service that ran to its end, skipped for a unit
	// whose condition did not hold; "" for what runs.
	State string `json:"state,omitempty"`
	// Definition has a token for the definition and each drop-in, complete; Triggers
	// for the files that somebody named as a reason to restart, Reloads for those that
	// need a reload only.
	Definition map[string]string `json:"definition"`
	Triggers   map[string]string `json:"triggers,omitempty"`
	Reloads    map[string]string `json:"reloads,omitempty"`
}

const (
	finished = "finished"
	skipped  = "skipped"
)

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

// maxHashed bounds the programs that are compared by content. Larger ones are
// compared by size, inode and time of modification: a plan is to be quick.
const maxHashed = 1 << 20

// token identifies what is at a path now.
func token(v *kind.View, path string) (string, error) {
	info, err := v.Lstat(path)
	switch {
	case err != nil:
		return "", err
	case info == nil:
		return kind.Absent, nil
	case info.Mode&fs.ModeSymlink != 0:
		target, err := v.Host.Readlink(path)
		return "link:" + target, err
	case info.Mode.IsDir():
		return "directory", nil
	case info.Size > maxHashed && isProgram(v, path):
		return fmt.Sprintf("stat:%d:%d:%d", info.Size, info.Inode, info.ModTime.UnixNano()), nil
	}
	return ledger.ContentSum(v.Host, path)
}

func isProgram(v *kind.View, path string) bool {
	return slices.ContainsFunc(v.State.Resources, func(r desired.Resource) bool {
		a, ok := r.(*desired.Artifact)
		return ok && slices.ContainsFunc(a.Files, func(f desired.ArtifactFile) bool { return v.Real(f.Path) == path })
	})
}

// tokens identifies what is at several paths now.
func tokens(v *kind.View, paths []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range paths {
		t, err := token(v, p)
		if err != nil {
			return nil, err
		}
		out[p] = t
	}
	return out, nil
}

// newest is the latest change of any path.
func newest(v *kind.View, paths []string) (string, time.Time, error) {
	var at time.Time
	var which string
	for _, p := range paths {
		info, err := v.Lstat(p)
		if err != nil {
			return "", at, err
		}
		if info != nil && info.ChangeTime.After(at) {
			at, which = info.ChangeTime, p
		}
	}
	return which, at, nil
}

// differing names the first path that both know and that differs.
func differing(have, want map[string]string) string {
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if old, ok := have[p]; ok && old != want[p] {
			return p
		}
	}
	return ""
}
