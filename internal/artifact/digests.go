package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/host"
)

// digestDir holds the machine's own list of digests: files *.json, each an
// object from URL to sha256 in hex.
const digestDir = "/etc/berth/artifacts.d"

// digests maps URLs to sha256 in hex.
type digests map[string]string

// readDigests reads all lists; names in order, later ones win.
func readDigests(h host.FS) (digests, error) {
	names, err := h.ReadDir(digestDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read list of digests: %w", err)
	}
	all := digests{}
	for _, name := range names {
		if path.Ext(name) != ".json" {
			continue
		}
		if err := all.read(h, path.Join(digestDir, name)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (d digests) read(h host.FS, p string) error {
	text, err := h.ReadFile(p)
	if err != nil {
		return fmt.Errorf("read list of digests: %w", err)
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
