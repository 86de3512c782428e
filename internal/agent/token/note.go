package token

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// NotePath is where is which files were written, so that they go with the agent. It is
// written before they are.
const NotePath = paths.StateDir + "/agent-tokens.json"

// note is what there would not be without the agent.
type note struct {
	// Files are the sums of the tokens that were written last, of which the newest may
	// not have come about.
	Files map[string][]string `json:"files"`
	// Dirs are directories that were made for them, outermost first.
	Dirs []string `json:"dirs,omitempty"`
}

// readNote reads it; one that can't be understood is lost.
func readNote(h host.FS) (note, error) {
	var n note
	text, ok, err := ledger.ReadFile(h, NotePath)
	if err != nil || !ok || json.Unmarshal(text, &n) != nil {
		return note{}, err
	}
	return n, nil
}

// remember notes a file that is about to be written. One that was there before the
// agent is not the agent's.
func (s *Sync) remember(file string, token []byte) error {
	s.noting.Lock()
	defer s.noting.Unlock()
	n, err := readNote(s.Host)
	if err != nil {
		return err
	}
	sums, known := n.Files[file]
	info, err := ledger.Lstat(s.Host, file)
	if err != nil || !known && info != nil {
		return err
	}
	sum := sumOf(token)
	if len(sums) > 0 && sums[len(sums)-1] == sum {
		return nil
	}
	if n.Files == nil {
		n.Files = map[string][]string{}
	}
	n.Files[file] = append(sums[max(0, len(sums)-1):], sum)
	n.Dirs = append(n.Dirs, missing(s.Host, path.Dir(file))...)
	return n.save(s.Host)
}

func sumOf(token []byte) string { return fmt.Sprintf("%x", sha256.Sum256(token)) }

// missing are a directory and those above it that are not there, outermost first.
func missing(h host.FS, dir string) (out []string) {
	for ; dir != "/"; dir = path.Dir(dir) {
		if info, err := ledger.Lstat(h, dir); err != nil || info != nil {
			break
		}
		out = append([]string{dir}, out...)
	}
	return out
}

func (n note) save(h host.FS) error {
	text, err := json.Marshal(n)
	if err == nil {
		err = host.PrivateDir(h, paths.StateDir)
	}
	if err == nil {
		err = host.WriteFile(h, NotePath, append(text, '\n'), host.Attributes{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("note where a token is: %w", err)
	}
	return nil
}

// TakeAway removes the files that were written, and the directories that were made
// for them and are empty. It returns what is no longer as it was written, and stays.
func TakeAway(h host.FS) (kept []string, err error) {
	n, err := readNote(h)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Sorted(maps.Keys(n.Files)) {
		ours, err := n.isOurs(h, p)
		if err != nil {
			return kept, err
		}
		if !ours {
			kept = append(kept, p+" is no longer the token that the agent wrote there")
			continue
		}
		if err := remove(h, p); err != nil {
			return kept, err
		}
	}
	slices.Reverse(n.Dirs)
	for _, p := range append(n.Dirs, NotePath) {
		if isFull(h, p) {
			continue
		}
		if err := remove(h, p); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// isOurs says whether a file is as the agent wrote it, or gone.
func (n note) isOurs(h host.FS, p string) (bool, error) {
	info, err := ledger.Lstat(h, p)
	if err != nil || info == nil {
		return err == nil, err
	}
	if !info.IsRegular() {
		return false, nil
	}
	text, err := h.ReadFile(p)
	if err != nil {
		return false, fmt.Errorf("look at a token: %w", err)
	}
	return slices.Contains(n.Files[p], sumOf(text)), nil
}

// remove removes what is there.
func remove(h host.FS, p string) error {
	err := h.Remove(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = h.SyncDir(path.Dir(p))
	}
	if err != nil {
		return fmt.Errorf("take away %s: %w", p, err)
	}
	return nil
}

// isFull says whether a directory holds something, which is others'.
func isFull(h host.FS, p string) bool {
	names, err := h.ReadDir(p)
	return err == nil && len(names) > 0
}
