package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"syscall"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// isKept says whether an extended attribute is a part of the original: what users
// attach, capabilities, SELinux labels and access lists. Others belong to the
// file system (trusted.overlay.*) or follow from the content (security.ima).
func isKept(name string) bool {
	switch name {
	case "security.capability", "security.selinux", "system.posix_acl_access":
		return true
	}
	return strings.HasPrefix(name, "user.")
}

// ContentName is where content with a sum is stored.
func ContentName(sum string) string { return OriginalsDir + "/content-" + sum }

// ContentSum is the sha256 of a file in hex.
func ContentSum(h host.FS, path string) (string, error) {
	f, err := h.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, *buffer); err != nil { // by its own WriteTo a file takes a buffer of its own
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// buffers are what files are read into, one after another.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// ErrEdited is a file that changed while it was copied.
var ErrEdited = errors.New("it changed while it was copied")

// Keep stores what stands at a path, several at once: nothing but the description
// for what stays in place. program says that a download replaces it. It is durable
// when SyncOriginals has returned. text is kept in place of the content; nil where that is
// the original.
func (l *Ledger) Keep(h host.FS, p string, info *host.Info, was *Standing, owner desired.Owner, program bool, text *string) error {
	if err := l.describe(h, p, info, was, program, text); err != nil {
		return fmt.Errorf("keep original of %s: %w", p, err)
	}
	x, err := l.kept.load(h)
	if err != nil {
		return err
	}
	x.note(p, original{Owner: owner, Was: *was})
	return nil
}

// StandingAt describes what stands at a path, without its content.
func StandingAt(info *host.Info) *Standing {
	s := &Standing{Type: File, Mode: PermBits(info.Mode), UID: info.UID, GID: info.GID}
	switch {
	case info.Mode.IsDir():
		s.Type = Directory
	case info.Mode&fs.ModeSymlink != 0:
		s.Type = Link
	}
	return s
}

// describe completes was, whose type, mode and owner are known.
func (l *Ledger) describe(h host.FS, p string, info *host.Info, was *Standing, program bool, text *string) (err error) {
	switch {
	case was.Stays():
		return nil
	case was.Type == Link:
		was.Target, err = h.Readlink(p)
		return err
	case !info.IsRegular():
		return fmt.Errorf("is %s and can't be replaced", DescribeType(h, p, info))
	}
	if text != nil {
		was.Sum, err = l.keepText(h, *text)
	} else {
		was.Sum, err = l.keepContent(h, p, info, program)
	}
	if err != nil {
		return err
	}
	was.Xattrs, err = KeptXattrs(h, p)
	return err
}

// KeptXattrs are the extended attributes of a path that are a part of it; nil for
// none.
func KeptXattrs(h host.FS, p string) (map[string][]byte, error) {
	out, err := h.Xattrs(p)
	maps.DeleteFunc(out, func(name string, _ []byte) bool { return !isKept(name) })
	if len(out) == 0 {
		return nil, err
	}
	return out, err
}

// keepContent stores the content of a file, once where several hold the same, and
// returns its sha256. A small one goes into the index: a batch of them is one file
// to make durable.
func (l *Ledger) keepContent(h host.FS, p string, info *host.Info, program bool) (string, error) {
	x, err := l.kept.load(h)
	if err != nil {
		return "", err
	}
	if !program && info.Size <= maxInline {
		data, err := h.ReadFile(p)
		if err != nil {
			return "", err
		}
		if sum, ok := x.add(data); ok {
			return sum, nil
		}
	}
	sum, err := ContentSum(h, p)
	if err != nil {
		return "", err
	}
	_, err, _ = l.kept.contents.Do(sum, func() (any, error) {
		have, err := ContentSum(h, ContentName(sum))
		if err == nil && have == sum || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, storeContent(h, p, info, sum, program)
	})
	return sum, err
}

// keepText stores a text as the content of an original.
func (l *Ledger) keepText(h host.FS, text string) (string, error) {
	x, err := l.kept.load(h)
	if err != nil {
		return "", err
	}
	if sum, ok := x.add([]byte(text)); ok {
		return sum, nil
	}
	sum := desired.Text(text).Sum()
	return sum, host.WriteFile(h, ContentName(sum), []byte(text), host.Attributes{Mode: 0o600})
}

// storeContent keeps a program that a download replaces under a second name: it
// is large, and nobody writes into a program. Of any other file it keeps a copy,
// since whoever has it open may write on.
func storeContent(h host.FS, p string, info *host.Info, sum string, program bool) error {
	to := ContentName(sum)
	if program && info.Links == 1 {
		if err := h.SyncFile(p); err != nil {
			return err
		}
		if err := RemoveIfThere(h, to); err != nil {
			return err
		}
		if err := h.Link(p, to); !errors.Is(err, syscall.EXDEV) && !host.NoLinks(err) {
			return err
		}
	}
	if err := host.PrepareFunc(h, to, host.Attributes{Mode: 0o600}, CopyOf(h, p, sum)); err != nil {
		return err
	}
	return host.Commit(h, to)
}

// CopyOf writes a file that has to have this sum.
func CopyOf(h host.FS, from, sum string) func(host.File) error {
	return func(to host.File) error {
		r, err := h.Open(from)
		if err != nil {
			return err
		}
		defer r.Close()
		hash := sha256.New()
		if _, err := io.Copy(io.MultiWriter(to, hash), r); err != nil {
			return err
		}
		if hex.EncodeToString(hash.Sum(nil)) != sum {
			return fmt.Errorf("%s: %w", from, ErrEdited)
		}
		return nil
	}
}

// Undone says whether there is nothing left to take back at a path: nothing stands there and nothing did, or its
// original stands there again.
func (e Entry) Undone(h host.FS, p string, info *host.Info) (bool, error) {
	if info == nil {
		return e.Was == nil || e.Was.Stays(), nil
	}
	if e.Was == nil {
		return false, nil
	}
	return e.Was.Restored(h, p, info)
}

// Restored says whether a path is again what it was before berth.
func (s *Standing) Restored(h host.FS, p string, info *host.Info) (bool, error) {
	switch {
	case s.Type == Link:
		target, err := h.Readlink(p)
		return err == nil && target == s.Target, nil
	case AttributeDifference(info, s.Mode, s.UID, s.GID) != "":
		return false, nil
	case s.Stays():
		return info.Mode.IsDir() == (s.Type == Directory), nil
	case !info.IsRegular():
		return false, nil
	}
	sum, err := ContentSum(h, p)
	if err != nil || sum != s.Sum {
		return false, err
	}
	return hasXattrs(h, p, s.Xattrs)
}

// hasXattrs says whether a path has these extended attributes; it may have more.
func hasXattrs(h host.FS, p string, want map[string][]byte) (bool, error) {
	if len(want) == 0 {
		return true, nil
	}
	have, err := h.Xattrs(p)
	if err != nil {
		return false, err
	}
	for name, value := range want {
		if got, ok := have[name]; !ok || !bytes.Equal(got, value) {
			return false, nil
		}
	}
	return true, nil
}
