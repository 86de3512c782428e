package kind

import "sync"

// Listed are the names in a directory, in order, as they were when the plan first
// asked: each unit looks into many that it shares with others.
func (v *View) Listed(dir string) ([]string, error) {
	v.mu.Lock()
	if v.listed == nil {
		v.mu.Unlock()
		return v.Host.ReadDir(dir)
	}
	list := v.listed[dir]
	if list == nil {
		list = sync.OnceValues(func() ([]string, error) { return v.Host.ReadDir(dir) })
		v.listed[dir] = list
	}
	v.mu.Unlock()
	return list()
}

// Begin says that changes begin: from here on Listed looks each time.
func (v *View) Begin() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listed = nil
}
