package kind

import (
	"encoding/hex"
	"path"
	"sync"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Machine is what is there: files as they are now, and what the plan has found once and
// asks for no more, such as the real names of directories. It knows nothing of the plan but which
// links go.
type Machine struct {
	Host   host.Host
	Ledger *ledger.Ledger

	contents *Contents
	mounts   func() ([]host.Mount, error)
	// going are links that this plan takes away, with where they lead.
	going map[string]string

	mu sync.Mutex
	// real are directories as Real has them, by how they are spelled.
	real map[string]string
	// described are files as they were when the plan began.
	described map[string]*host.Info
	// listed are directories as they were when the plan first asked; nil when the plan
	// is made and changes begin.
	listed map[string]func() ([]string, error)
}

func machine(o Options, h host.Host, st *desired.State, l *ledger.Ledger) Machine {
	return Machine{Host: h, Ledger: l, contents: o.Contents, mounts: o.Mounts, going: goingLinks(st, l),
		real: map[string]string{}, described: make(map[string]*host.Info, len(st.Resources)), listed: map[string]func() ([]string, error){}}
}

// Lstat describes a path, nil if there is nothing. Below a link that goes there is nothing:
// a directory takes its place.
func (m *Machine) Lstat(path string) (*host.Info, error) {
	if m.belowGoing(path) {
		return nil, nil
	}
	return ledger.Lstat(m.Host, path)
}

// ReadFile reads a file; ok is false if there is none.
func (m *Machine) ReadFile(path string) (data []byte, ok bool, err error) {
	return ledger.ReadFile(m.Host, path)
}

// KnownDigest is the sha256 of what a file holds, where that is known without
// reading it; "" where it is not.
func (m *Machine) KnownDigest(path string, info *host.Info) string {
	if held := m.Ledger.Entries[path].Held; held != nil && held.Seen == ledger.Seen(info) {
		return held.Sum
	}
	return m.contents.sum(path, info)
}

// Digest is the sha256 of what a file holds.
func (m *Machine) Digest(path string, info *host.Info) (string, error) {
	if sum := m.KnownDigest(path, info); sum != "" {
		return sum, nil
	}
	sum, err := ledger.ContentSum(m.Host, path)
	if err == nil {
		m.contents.hold(path, sum, info, m.Host.Now())
	}
	return sum, err
}

// Wrote says whether a file holds still what berth wrote into it, by the file's own
// attribute: of what the ledger does not know, since all of it was lost.
func (m *Machine) Wrote(path string, info *host.Info) (bool, error) {
	if !info.IsRegular() {
		return false, nil
	}
	attributes, err := m.Host.Xattrs(path)
	if err != nil {
		return false, err
	}
	written, ok := attributes[host.ProvenanceName]
	if !ok {
		return false, nil
	}
	sum, err := m.Digest(path, info)
	return sum == hex.EncodeToString(written), err
}

// fewNames are those for which a directory is not opened by itself.
const fewNames = 3

// Describe looks at many files beforehand, directory by directory, where the host can
// do that: each finds what is there in one call and not in three. run runs functions
// side by side. What fails is left to who looks at the file itself.
func (m *Machine) Describe(run func(func()), files []string) {
	d, ok := m.Host.(host.Describer)
	if !ok {
		return
	}
	by := map[string][]string{}
	for _, name := range files {
		dir, base := path.Split(name)
		by[dir] = append(by[dir], base)
	}
	for dir, names := range by {
		if len(names) <= fewNames {
			continue
		}
		run(func() {
			infos, err := d.Describe(path.Clean(dir), names)
			if err != nil {
				return
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			for i, base := range names {
				m.described[dir+base] = infos[i]
			}
		})
	}
}

// Described is a file as it was when the plan began to look at the tree.
func (m *Machine) Described(name string) (*host.Info, error) {
	m.mu.Lock()
	info, ok := m.described[name]
	m.mu.Unlock()
	if ok && !m.belowGoing(name) {
		return info, nil
	}
	return m.Lstat(name)
}

// Listed are the names in a directory, in order, as they were when the plan first
// asked: each unit looks into many that it shares with others.
func (m *Machine) Listed(dir string) ([]string, error) {
	m.mu.Lock()
	if m.listed == nil {
		m.mu.Unlock()
		return m.Host.ReadDir(dir)
	}
	list := m.listed[dir]
	if list == nil {
		list = sync.OnceValues(func() ([]string, error) { return m.Host.ReadDir(dir) })
		m.listed[dir] = list
	}
	m.mu.Unlock()
	return list()
}

// Begin says that changes begin: from here on Listed looks each time.
func (m *Machine) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed = nil
}
