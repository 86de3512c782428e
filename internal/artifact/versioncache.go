package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

const (
	cacheDir  = paths.StateDir + "/cache"
	cacheFile = cacheDir + "/versions.json"
)

// fileKey names a file's present content.
func fileKey(h host.FS, p string) (string, error) {
	info, err := h.Lstat(p)
	if err != nil {
		return "", fmt.Errorf("find program: %w", err)
	}
	return fmt.Sprintf("%s %d %d %d %d", p, info.Size, info.ModTime.UnixNano(), info.ChangeTime.UnixNano(), info.Inode), nil
}

// versions remembers which file is of which version. Lost, it costs the time to
// ask again: its own errors end nothing.
type versions struct {
	mu    sync.Mutex
	known map[string]string
	// kept are those that were learnt by running the program; read is set once
	// the machine's own copy was looked at.
	kept map[string]string
	read bool
}

func (v *versions) get(h host.FS, key string) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.load(h)
	if version, ok := v.known[key]; ok {
		return version, true
	}
	version, ok := v.kept[key]
	return version, ok
}

func (v *versions) load(h host.FS) {
	if v.read {
		return
	}
	v.read, v.known, v.kept = true, map[string]string{}, map[string]string{}
	text, err := h.ReadFile(cacheFile)
	if err != nil {
		return
	}
	if json.Unmarshal(text, &v.kept) != nil || v.kept == nil {
		v.kept = map[string]string{}
	}
}

func (v *versions) remember(key, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known[key] = version
}

// keep remembers a version on the machine too, for the next program's start.
func (v *versions) keep(h host.FS, key, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept[key] = version
	maps.DeleteFunc(v.kept, func(k, _ string) bool { return k != key && sameFile(k, key) })
	text, err := json.MarshalIndent(v.kept, "", "  ")
	if err != nil {
		return
	}
	for _, dir := range []string{paths.StateDir, cacheDir} {
		if err := h.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return
		}
	}
	_ = host.WriteFile(h, cacheFile, append(text, '\n'), host.Attributes{Mode: 0o600})
}

// sameFile says whether two keys are of one path.
func sameFile(a, b string) bool { return keyPath(a) == keyPath(b) }

// keyPath is a key without its four numbers.
func keyPath(key string) string {
	for range 4 {
		if i := strings.LastIndexByte(key, ' '); i >= 0 {
			key = key[:i]
		}
	}
	return key
}
