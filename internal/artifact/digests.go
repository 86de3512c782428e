package artifact

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// DigestDir holds the machine's own list of digests: files *.json, each an
// object from URL to sha256 in hex.
const DigestDir = paths.SettingsDir + "/artifacts.d"

// digests maps URLs to sha256 in hex.
type digests map[string]string

// readDigests reads all lists; names in order, later ones win.
func readDigests(h host.FS) (digests, error) {
	names, err := h.ReadDir(DigestDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read list of digests: %w", err)
	}
	keys, err := bundle.TrustedKeys(h)
	if err != nil {
		return nil, err
	}
	all := digests{}
	for _, name := range names {
		if path.Ext(name) != ".json" {
			continue
		}
		if err := all.read(h, path.Join(DigestDir, name), keys); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// of is the digest for a URL: under the whole of it, or, since a query may be a
// secret that changes, under what comes before that.
func (d digests) of(u *url.URL) string {
	return cmp.Or(d[u.String()], d[shown(u)])
}

func (d digests) read(h host.FS, p string, keys []ed25519.PublicKey) error {
	text, err := h.ReadFile(p)
	if err != nil {
		return fmt.Errorf("read list of digests: %w", err)
	}
	if err := authenticate(h, p, text, keys); err != nil {
		return err
	}
	list, err := parseDigests(text)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	for u, digest := range list {
		d[u] = digest
	}
	return nil
}

// authenticate wants one of the keys to have signed a list; no keys, no wish. The
// signature of list.json is list.json.sig: ed25519 over its bytes, raw or base64,
// as "openssl pkeyutl -sign -rawin" writes it.
func authenticate(h host.FS, p string, text []byte, keys []ed25519.PublicKey) error {
	if len(keys) == 0 {
		return nil
	}
	sig, err := h.ReadFile(p + ".sig")
	if errors.Is(err, fs.ErrNotExist) {
		return &ListError{p, "it is not signed, and there are keys in " + bundle.KeyDir}
	}
	if err != nil {
		return fmt.Errorf("read signature: %w", err)
	}
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(sig))); err == nil {
		sig = decoded
	}
	for _, key := range keys {
		if ed25519.Verify(key, text, sig) {
			return nil
		}
	}
	return &ListError{p, "none of the keys in " + bundle.KeyDir + " has made its signature"}
}

// ListError is a list of digests that nobody trusted vouches for.
type ListError struct{ Path, Reason string }

// Error names the list.
func (e *ListError) Error() string { return e.Path + ": " + e.Reason }

// ExitCode is the code for content that must not be used.
func (*ListError) ExitCode() int { return exitcode.Digest }

// Hint says how to sign.
func (e *ListError) Hint() string {
	return "sign the list: openssl pkeyutl -sign -rawin -inkey KEY -in LIST -out LIST.sig"
}

func parseDigests(text []byte) (digests, error) {
	list := digests{}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("want an object of URL to sha256: %w", err)
	}
	for u, text := range list {
		digest, err := checkDigest(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u, err)
		}
		list[u] = digest
	}
	return list, nil
}
