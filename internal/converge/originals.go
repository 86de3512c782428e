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

	"golang.org/x/sync/singleflight"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// sidecar describes what stood at a path before berth: enough to restore it.
// Its file name is the hash of the path; content, if any, is stored beside it
// under "content-" and its own hash.
type sidecar struct {
	Path   string      `json:"path"`
	Type   string      `json:"type"` // file or link
	Target string      `json:"target,omitempty"`
	Sum    string      `json:"sum,omitempty"`
	Mode   fs.FileMode `json:"mode"`
	UID    int         `json:"uid"`
	GID    int         `json:"gid"`
	// Xattrs are the extended attributes of a file that isKept names.
	Xattrs map[string][]byte `json:"xattrs,omitempty"`
}

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

// original stores what stands at a path that is not in the ledger and
// returns the sidecar's name. Only the first foreign version is kept: once the
// path is in the ledger, nobody calls this for it.
func (k *keeping) original(h host.FS, p string, info *host.Info) (string, error) {
	name := sidecarName(p)
	s := sidecar{Path: p, Mode: permBits(info.Mode), UID: info.UID, GID: info.GID}
	if err := k.describe(&s, h, p, info); err != nil {
		return "", fmt.Errorf("keep original of %s: %w", p, err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	return name, host.WriteFile(h, originalsDir+"/"+name, data, host.Attributes{Mode: 0o600})
}

func (k *keeping) describe(s *sidecar, h host.FS, p string, info *host.Info) (err error) {
	if info.Mode&fs.ModeSymlink != 0 {
		s.Type = "link"
		s.Target, err = h.Readlink(p)
		return err
	}
	if !info.IsRegular() {
		return fmt.Errorf("is %s and can't be replaced", describeType(h, p, info))
	}
	data, err := h.ReadFile(p)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	s.Type, s.Sum = "file", hex.EncodeToString(sum[:])
	if s.Xattrs, err = h.Xattrs(p); err != nil {
		return err
	}
	maps.DeleteFunc(s.Xattrs, func(name string, _ []byte) bool { return !isKept(name) })
	return k.content(h, s.Sum, data)
}

// keeping stores originals, several at once.
type keeping struct{ contents singleflight.Group }

// content stores what a file held, once where several held the same.
func (k *keeping) content(h host.FS, sum string, data []byte) error {
	name := contentName(sum)
	_, err, _ := k.contents.Do(sum, func() (any, error) {
		if have, ok, err := readFile(h, name); err != nil || ok && bytes.Equal(have, data) {
			return nil, err
		}
		return nil, host.WriteFile(h, name, data, host.Attributes{Mode: 0o600})
	})
	return err
}

// restore is the put that brings an original back.
func restore(h host.FS, name string) (*put, error) {
	s, err := readSidecar(h, name)
	if err != nil {
		return nil, fmt.Errorf("read original: %w", err)
	}
	p := &put{path: s.Path, target: s.Target, attrs: s.attributes(), forget: true}
	if s.Type == "link" {
		p.kind = putLink
		return p, nil
	}
	data, err := h.ReadFile(contentName(s.Sum))
	if err != nil {
		return nil, fmt.Errorf("read original of %s: %w", s.Path, err)
	}
	p.content = secretIfNarrow(data, s.Mode)
	return p, nil
}

// restored says whether a path is again what it was before berth.
func restored(h host.FS, name string, info *host.Info) (bool, error) {
	s, err := readSidecar(h, name)
	if err != nil {
		return false, fmt.Errorf("read original: %w", err)
	}
	if s.Type == "link" {
		target, err := h.Readlink(s.Path)
		return err == nil && target == s.Target, nil
	}
	tok, err := token(h, s.Path)
	if err != nil || tok != s.Sum || attributeDifference(info, s.attributes()) != "" {
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

// secretIfNarrow treats content that others may not read as secret, so that no
// plan shows it.
func secretIfNarrow(data []byte, mode fs.FileMode) desired.Content {
	if mode&0o077 == 0 {
		return desired.SecretBytes(data)
	}
	return desired.Bytes(data)
}
