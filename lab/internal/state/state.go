// Package state remembers what a lab put on this machine, so that another
// process can find it and take it away.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/berth-dev/berth/lab/internal/proc"
	"golang.org/x/sys/unix"
)

// Dir holds one directory per lab; it does not survive a boot of the host, and
// neither do the things that it names.
const Dir = "/run/berth-lab"

// DataDir holds the labs' disks.
const DataDir = "/var/lib/berth-lab"

// Node is one machine of a lab.
type Node struct {
	IP       string   `json:"ip"`
	Machine  string   `json:"machine"` // nspawn's name for it
	Dir      string   `json:"dir"`
	Lowers   []string `json:"lowers"`
	CgroupV2 bool     `json:"cgroupV2,omitempty"`
	Cgroups  []string `json:"cgroups,omitempty"`
}

// VM is one emulated machine of a lab.
type VM struct {
	IP  string `json:"ip"`
	Dir string `json:"dir"`
	Tap string `json:"tap"`
}

// State is what a lab put on this machine.
type State struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Subnet    string          `json:"subnet"`
	Owner     *proc.ID        `json:"owner,omitempty"` // the lab dies with it; nil: it stays until `down`
	Processes []proc.ID       `json:"processes"`
	Nodes     map[string]Node `json:"nodes"`
	VMs       map[string]VM   `json:"vms,omitempty"`
	// Names are answered by the name server besides those of nodes.
	Names map[string]string `json:"names,omitempty"`
}

// Data is the lab's directory for disks, logs and keys.
func (s *State) Data() string { return filepath.Join(DataDir, s.Name) }

// Stale reports whether the process that the lab belongs to is gone.
func (s *State) Stale() bool { return s.Owner != nil && !s.Owner.Alive() }

// Load reads a lab's state. The error is fs.ErrNotExist if there is none.
func Load(name string) (*State, error) {
	b, err := os.ReadFile(path(name))
	if err != nil {
		return nil, fmt.Errorf("read lab state: %w", err)
	}
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("read lab state: %w", err)
	}
	return s, nil
}

// List names all labs that have a state.
func List() ([]string, error) {
	entries, err := os.ReadDir(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(path(e.Name())); err == nil {
			names = append(names, e.Name())
		}
	}
	sort.Strings(names)
	return names, nil
}

// Create writes the state of a new lab. The error is fs.ErrExist if there is one.
func Create(s *State) error {
	return locked(s.Name, func() error {
		if _, err := os.Stat(path(s.Name)); err == nil {
			return fmt.Errorf("create lab %s: %w", s.Name, fs.ErrExist)
		}
		return save(s)
	})
}

// Update changes a lab's state under its lock.
func Update(name string, change func(*State) error) error {
	return locked(name, func() error {
		s, err := Load(name)
		if err != nil {
			return err
		}
		if err := change(s); err != nil {
			return err
		}
		return save(s)
	})
}

// Remove forgets a lab.
func Remove(name string) error {
	if err := os.RemoveAll(filepath.Join(Dir, name)); err != nil {
		return fmt.Errorf("remove lab state: %w", err)
	}
	return nil
}

func path(name string) string { return filepath.Join(Dir, name, "state.json") }

func save(s *State) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("encode lab state: %w", err)
	}
	tmp := path(s.Name) + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("write lab state: %w", err)
	}
	if err := os.Rename(tmp, path(s.Name)); err != nil {
		return fmt.Errorf("write lab state: %w", err)
	}
	return nil
}

func locked(name string, f func() error) error {
	if err := os.MkdirAll(filepath.Join(Dir, name), 0o700); err != nil {
		return fmt.Errorf("create lab state: %w", err)
	}
	l, err := os.OpenFile(filepath.Join(Dir, name, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lab state lock: %w", err)
	}
	defer l.Close()
	if err := unix.Flock(int(l.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock lab state: %w", err)
	}
	return f()
}
