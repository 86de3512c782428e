package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sync/singleflight"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// sidecar says of an original what the ledger says of it, for the day on which the
// ledger is lost. Its file name is the hash of the path; content is stored beside
// it under "content-" and its own sum.
type sidecar struct {
	Path string `json:"path"`
	// Owner is whose contract replaced it.
	Owner desired.Owner `json:"owner,omitempty"`
	Was   Standing      `json:"was"`
}

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

func sidecarName(p string) string {
	sum := sha256.Sum256([]byte(p))
	return hex.EncodeToString(sum[:8]) + ".json"
}

func readSidecar(h host.FS, name string) (sidecar, error) {
	var s sidecar
	if path.Ext(name) != ".json" {
		return s, nil
	}
	data, err := h.ReadFile(OriginalsDir + "/" + name)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
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
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ErrEdited is a file that changed while it was copied.
var ErrEdited = errors.New("it changed while it was copied")

// Keeper stores originals, several at once. Their names are durable after Sync.
type Keeper struct{ contents singleflight.Group }

// Keep stores what stands at a path: nothing but the description for what stays
// in place. program says that a download replaces it. The content of a file and
// the description are durable when Sync has returned.
func (k *Keeper) Keep(h host.FS, p string, info *host.Info, was *Standing, owner desired.Owner, program bool) error {
	if err := k.describe(h, p, info, was, program); err != nil {
		return fmt.Errorf("keep original of %s: %w", p, err)
	}
	data, err := json.Marshal(sidecar{Path: p, Owner: owner, Was: *was})
	if err != nil {
		return err
	}
	name := OriginalsDir + "/" + sidecarName(p)
	if err := host.Prepare(h, name, data, host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("keep original of %s: %w", p, err)
	}
	return host.Commit(h, name)
}

// Sync makes the names of originals durable, once for many.
func (k *Keeper) Sync(h host.FS) error { return h.SyncDir(OriginalsDir) }

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
func (k *Keeper) describe(h host.FS, p string, info *host.Info, was *Standing, program bool) (err error) {
	switch {
	case was.Stays():
		return nil
	case was.Type == Link:
		was.Target, err = h.Readlink(p)
		return err
	case !info.IsRegular():
		return fmt.Errorf("is %s and can't be replaced", DescribeType(h, p, info))
	}
	if was.Sum, err = k.content(h, p, info, program); err != nil {
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

// content stores the content of a file, once where several hold the same, and
// returns its sha256.
func (k *Keeper) content(h host.FS, p string, info *host.Info, program bool) (string, error) {
	sum, err := ContentSum(h, p)
	if err != nil {
		return "", err
	}
	_, err, _ = k.contents.Do(sum, func() (any, error) {
		have, err := ContentSum(h, ContentName(sum))
		if err == nil && have == sum || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, keepContent(h, p, info, sum, program)
	})
	return sum, err
}

// keepContent keeps a program that a download replaces under a second name: it
// is large, and nobody writes into a program. Of any other file it keeps a copy,
// since whoever has it open may write on.
func keepContent(h host.FS, p string, info *host.Info, sum string, program bool) error {
	to := ContentName(sum)
	if program && info.Links == 1 {
		if err := h.SyncFile(p); err != nil {
			return err
		}
		if err := RemoveIfThere(h, to); err != nil {
			return err
		}
		if err := h.Link(p, to); !errors.Is(err, syscall.EXDEV) {
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

// Sweep removes what the ledger does not name: originals that came back, and
// those of a run that was cut off before it needed them.
func (l *Ledger) Sweep(h host.FS) error {
	names, err := h.ReadDir(OriginalsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep originals: %w", err)
	}
	named, swept := l.originals(), false
	for _, name := range names {
		if named[name] {
			continue
		}
		if err := RemoveIfThere(h, OriginalsDir+"/"+name); err != nil {
			return fmt.Errorf("sweep originals: %w", err)
		}
		swept = true
	}
	if !swept {
		return nil
	}
	return h.SyncDir(OriginalsDir)
}

func (l *Ledger) originals() map[string]bool {
	named := map[string]bool{}
	for name, e := range l.Entries {
		if e.Was != nil && IsPath(name) {
			named[sidecarName(name)], named[path.Base(ContentName(e.Was.Sum))] = true, true
		}
	}
	return named
}

// Attribute makes an original that of an owner who is left.
func (l *Ledger) Attribute(h host.FS, name string) error {
	e := l.Entries[name]
	if e.Was == nil || !IsPath(name) || len(e.Owners) == 0 {
		return nil
	}
	side, err := readSidecar(h, sidecarName(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read original: %w", err)
	}
	if e.Owns(side.Owner) {
		return nil
	}
	data, err := json.Marshal(sidecar{Path: name, Owner: e.Others("")[0], Was: *e.Was})
	if err != nil {
		return err
	}
	return host.WriteFile(h, OriginalsDir+"/"+sidecarName(name), data, host.Attributes{Mode: 0o600})
}
