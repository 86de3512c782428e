// Package sysctl remembers the host's kernel settings and puts back those that
// nodes, which share the kernel, have changed.
package sysctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// trees are the settings that no namespace separates.
var trees = []string{"/proc/sys/vm", "/proc/sys/kernel", "/proc/sys/fs", "/proc/sys/net/core", "/proc/sys/net/netfilter",
	"/sys/kernel/mm/transparent_hugepage"}

// volatile are values that change by themselves or belong to a namespace.
var volatile = []string{"/kernel/random/", "ns_last_pid", "/kernel/hostname", "/kernel/domainname", "/kernel/pty/nr",
	"/fs/binfmt_misc/", "nf_conntrack_count", "sched_domain", "/khugepaged/", "/kernel/tainted", "cad_pid", "/kernel/ipc", "/kernel/msg", "/kernel/sem", "/kernel/shm",
	"min_free_kbytes", "/fs/mqueue"}

// Snapshot reads all settings that can be read and written.
func Snapshot() map[string]string {
	values := map[string]string{}
	for _, t := range trees {
		_ = filepath.WalkDir(t, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && eligible(p, d) {
				if b, err := os.ReadFile(p); err == nil {
					values[p] = string(b)
				}
			}
			return nil
		})
	}
	return values
}

func eligible(path string, d fs.DirEntry) bool {
	for _, v := range volatile {
		if strings.Contains(path, v) {
			return false
		}
	}
	info, err := d.Info()
	return err == nil && info.Mode()&0o200 != 0 && info.Mode()&0o444 != 0
}

// Save writes a snapshot to path unless there is one: the first lab's counts.
func Save(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	b, err := json.Marshal(Snapshot())
	if err != nil {
		return fmt.Errorf("encode kernel settings: %w", err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("save kernel settings: %w", err)
	}
	return nil
}

// Restore puts the settings of the snapshot at path back, removes it and
// returns what it wrote. No snapshot is no error.
func Restore(path string) (restored []string, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read kernel settings: %w", err)
	}
	var saved map[string]string
	if err := json.Unmarshal(b, &saved); err != nil {
		return nil, fmt.Errorf("read kernel settings: %w", err)
	}
	for p, now := range Snapshot() {
		before, ok := saved[p]
		if !ok || before == now {
			continue
		}
		if err := os.WriteFile(p, []byte(choice(before)), 0); err == nil {
			restored = append(restored, p)
		}
	}
	return restored, os.Remove(path)
}

// choice is the value to write: of a list such as "always [madvise] never"
// the chosen word.
func choice(value string) string {
	if i, j := strings.IndexByte(value, '['), strings.IndexByte(value, ']'); i >= 0 && i < j {
		return value[i+1 : j]
	}
	return value
}
