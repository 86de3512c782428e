package unit

import (
	"io/fs"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// revision identifies what the unit reads of a path now, in the stamp's way where that speaks of
// the path; ok is true.
func (in *inputs) revision(at string) (rev string, ok bool, err error) {
	rev, err = read(in.v, at, in.last.revision(at), in.unread(at))
	return rev, true, err
}

// future is the revision of a path as it will be; ok is false where that is not
// known yet.
func (in *inputs) future(at string) (rev string, ok bool, err error) {
	if in.v.Deletes(at) {
		return kind.Absent, true, nil
	}
	if q := in.v.Expected(at); q != nil {
		unread := in.unread(at)
		if len(unread) == 0 || q.Type != ledger.File || q.Prepared || q.Stored != "" {
			rev, ok = q.Revision()
			return rev, ok, nil
		}
		return without(q.Content.Data(), unread), true, nil
	}
	if in.v.Changes(at) {
		return "", false, nil // made in stage
	}
	return in.revision(at)
}

// immaterial says that the plan changes only what the unit does not read of a path: its mode, its
// owner, or text of which it has no use.
func (in *inputs) immaterial(at string) bool {
	if !in.v.Changes(at) || in.v.Deletes(at) {
		return false
	}
	then, ok, err := in.future(at)
	if err != nil || !ok {
		return false
	}
	now, _, err := in.revision(at)
	return err == nil && then == now
}

// unread are expressions of what of a trigger a running unit has no use for, for all who name the
// file; none where it reads all of it. What the stamp has is compared in the stamp's way, whoever
// made it.
func (in *inputs) unread(at string) []string {
	if in.last.Unread == nil || in.last.revision(at) == "" {
		for name, expressions := range in.u.Unread {
			if in.v.Real(name) == at {
				return expressions
			}
		}
	}
	return in.last.Unread[at]
}

// without is the revision of a text that leaves out what matches some expressions.
func without(data []byte, expressions []string) string {
	return desired.Bytes(regexp.MustCompile("(?:"+strings.Join(expressions, ")|(?:")+")").ReplaceAll(data, nil)).Sum()
}

// read identifies what is at a path now but for what is unread, in the way in which last does
// where that is known.
func read(v *kind.View, at, last string, unread []string) (string, error) {
	info, err := v.Lstat(at)
	switch {
	case err != nil:
		return "", err
	case info == nil:
		return kind.Absent, nil
	case info.Mode&fs.ModeSymlink != 0:
		target, err := v.Host.Readlink(at)
		return "link:" + target, err
	case info.Mode.IsDir():
		return "directory", nil
	case len(unread) > 0 && info.IsRegular():
		data, err := v.Host.ReadFile(at)
		return without(data, unread), err
	case info.Size > kind.MaxRead && (v.IsDownload(at) || strings.HasPrefix(last, unhashed)):
		return program(v, at, info, last)
	}
	return v.Digest(at, info)
}

// unhashed begins the revision of a program of which nobody has read what it holds.
const unhashed = "stat:"

// program identifies a large program by its digest where that is known, or can be
// compared with one. The first run has no time to read it: Learn puts the digest in
// this revision.
func program(v *kind.View, at string, info *host.Info, last string) (string, error) {
	switch sum := v.KnownDigest(at, info); {
	case strings.HasPrefix(last, unhashed), sum == "" && last == "":
		return unhashed + ledger.Seen(info), nil
	case sum != "":
		return sum, nil
	}
	return v.Digest(at, info)
}
