package converge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// sidecar describes what stood at a path before berth: enough to restore it.
// Its file name is the hash of the path; content, if any, is stored beside it
// under "content-" and its own hash.
type sidecar struct {
	Path   string      `json:"path"`
	Type   string      `json:"type"`
	Target string      `json:"target,omitempty"`
	Sum    string      `json:"sum,omitempty"`
	Mode   fs.FileMode `json:"mode"`
	UID    int         `json:"uid"`
	GID    int         `json:"gid"`
	// Owner is whose contract replaced it, for the day on which the ledger is lost.
	Owner desired.Owner `json:"owner,omitempty"`
	// Xattrs are the extended attributes of a file that isKept names.
	Xattrs map[string][]byte `json:"xattrs,omitempty"`
}

// The types of originals. Of a directory, and of a program whose mode alone was
// changed, only mode and owner are berth's to bring back.
const (
	originalFile      = "file"
	originalLink      = "link"
	originalDirectory = "directory"
	originalMode      = "mode"
)

// inPlace says that the original never went away: its attributes were others.
func (s *sidecar) inPlace() bool { return s.Type == originalDirectory || s.Type == originalMode }

// attributes are what a restored file gets.
func (s *sidecar) attributes() host.Attributes {
	return host.Attributes{Mode: s.Mode, UID: s.UID, GID: s.GID, Xattrs: s.Xattrs}
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
	data, err := h.ReadFile(originalsDir + "/" + name)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}

func contentName(sum string) string { return originalsDir + "/content-" + sum }

// original stores what stands where a put goes and returns the sidecar's name.
// Only the first foreign version is kept: once berth has put something there,
// nobody calls this for the path.
func (k *keeping) original(h host.FS, q *put, owner desired.Owner) (string, error) {
	name, info := sidecarName(q.path), q.seen
	s := sidecar{Path: q.path, Mode: permBits(info.Mode), UID: info.UID, GID: info.GID, Owner: owner}
	if q.modeWas {
		first, err := readSidecar(h, name)
		if err != nil {
			return "", fmt.Errorf("read original: %w", err)
		}
		s.Mode, s.UID, s.GID = first.Mode, first.UID, first.GID
	}
	if err := k.describe(&s, h, q); err != nil {
		return "", fmt.Errorf("keep original of %s: %w", q.path, err)
	}
	return name, s.save(h, name)
}

func (s *sidecar) save(h host.FS, name string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return host.WriteFile(h, originalsDir+"/"+name, data, host.Attributes{Mode: 0o600})
}

func (k *keeping) describe(s *sidecar, h host.FS, q *put) (err error) {
	switch {
	case q.kind == putDir:
		s.Type = originalDirectory
		return nil
	case q.kind == putAttributes:
		s.Type = originalMode
		return nil
	case q.seen.Mode&fs.ModeSymlink != 0:
		s.Type = originalLink
		s.Target, err = h.Readlink(q.path)
		return err
	case !q.seen.IsRegular():
		return fmt.Errorf("is %s and can't be replaced", describeType(h, q.path, q.seen))
	}
	s.Type = originalFile
	if s.Sum, err = k.content(h, q); err != nil {
		return err
	}
	if s.Xattrs, err = h.Xattrs(q.path); err != nil {
		return err
	}
	maps.DeleteFunc(s.Xattrs, func(name string, _ []byte) bool { return !isKept(name) })
	return nil
}

// restore is the put that brings an original back.
func restore(h host.FS, name string) (*put, error) {
	s, err := readSidecar(h, name)
	if err != nil {
		return nil, fmt.Errorf("read original: %w", err)
	}
	p := &put{path: s.Path, target: s.Target, attrs: s.attributes(), forget: true}
	switch s.Type {
	case originalLink:
		p.kind = putLink
	case originalDirectory:
		p.kind = putDir
	case originalMode:
		p.kind = putAttributes
	default:
		err = p.fillFrom(h, s.Sum)
	}
	if err != nil {
		return nil, fmt.Errorf("read original of %s: %w", s.Path, err)
	}
	return p, nil
}

// restored says whether a path is again what it was before berth.
func restored(h host.FS, name string, info *host.Info) (bool, error) {
	s, err := readSidecar(h, name)
	if err != nil {
		return false, fmt.Errorf("read original: %w", err)
	}
	switch {
	case s.Type == originalLink:
		target, err := h.Readlink(s.Path)
		return err == nil && target == s.Target, nil
	case attributeDifference(info, s.attributes()) != "":
		return false, nil
	case s.inPlace():
		return info.Mode.IsDir() == (s.Type == originalDirectory), nil
	case !info.IsRegular():
		return false, nil
	}
	sum, err := contentSum(h, s.Path)
	if err != nil || sum != s.Sum {
		return false, err
	}
	return hasXattrs(h, s.Path, s.Xattrs)
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

// sweepOriginals removes what the ledger does not name: originals that came
// back, and those of a run that was cut off before the ledger named them.
func sweepOriginals(h host.FS, led *ledger) error {
	names, err := h.ReadDir(originalsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep originals: %w", err)
	}
	named, err := namedOriginals(h, led)
	if err != nil {
		return err
	}
	swept := false
	for _, name := range names {
		if named[name] {
			continue
		}
		if err := removeIfThere(h, originalsDir+"/"+name); err != nil {
			return fmt.Errorf("sweep originals: %w", err)
		}
		swept = true
	}
	if !swept {
		return nil
	}
	return h.SyncDir(originalsDir)
}

func namedOriginals(h host.FS, led *ledger) (map[string]bool, error) {
	named := map[string]bool{}
	for _, e := range led.Entries {
		if e.Original == "" {
			continue
		}
		s, err := readSidecar(h, e.Original)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read original: %w", err)
		}
		named[e.Original], named[path.Base(contentName(s.Sum))] = true, true
	}
	return named, nil
}
