package kind

import (
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// maxLinks bounds the links in a path, as the kernel does.
const maxLinks = 40

// Real is a path without links among its parents, so that /lib/x and /usr/lib/x
// are one name. A parent that berth does not follow stays as it is spelled.
func (m *Machine) Real(p string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	links, dir := maxLinks, path.Dir(p)
	real := m.realDir(dir, &links)
	if base := path.Base(p); real != dir || base[0] == '.' || len(p) != len(dir)+1+len(base) {
		return path.Join(real, base)
	}
	return p // as it is spelled: most are
}

func (m *Machine) realDir(dir string, links *int) string {
	if dir == "/" || dir == "." {
		return dir
	}
	if r, ok := m.real[dir]; ok {
		return r
	}
	r := path.Join(m.realDir(path.Dir(dir), links), path.Base(dir))
	if target := m.followed(r); target != "" && *links > 0 {
		*links--
		r = m.realDir(target, links)
	}
	m.real[dir] = r
	return r
}

// followed is where a link leads that berth follows; "" for what is none, or for
// one that goes: what is wanted below it takes its place.
func (m *Machine) followed(p string) string {
	info, err := m.Host.Lstat(p)
	if err != nil || info.Mode&fs.ModeSymlink == 0 || info.UID != 0 || m.goes(p) {
		return ""
	}
	target, err := m.Host.Readlink(p)
	if err != nil {
		return ""
	}
	to := host.Splice(path.Dir(p), target, "")
	if host.LeadsAstray(p, to) {
		return ""
	}
	return to
}

// goingLinks are the links that are this owner's alone, who wants none there any more, with
// what berth had them lead to.
func goingLinks(st *desired.State, l *ledger.Ledger) map[string]string {
	out := map[string]string{}
	for p, e := range l.Entries {
		alone := e.Applied.Type == ledger.Link && !e.Adopted && e.Owns(st.Owner) && len(e.Owners) == 1
		if alone && st.Lookup(desired.LinkID(p)) == nil {
			out[p] = e.Applied.Target
		}
	}
	return out
}

// goes says whether a link goes. One that somebody made lead elsewhere stays.
func (m *Machine) goes(p string) bool {
	to, going := m.going[p]
	if !going {
		return false
	}
	target, err := m.Host.Readlink(p)
	return err == nil && target == to
}

func (m *Machine) belowGoing(p string) bool {
	if len(m.going) == 0 {
		return false
	}
	for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
		if m.goes(dir) {
			return true
		}
	}
	return false
}
