package kind

import (
	"path"

	"github.com/berth-dev/berth/internal/host"
)

// fewNames are those for which a directory is not opened by itself.
const fewNames = 3

// Describe looks at many files beforehand, directory by directory, where the host can
// do that: each finds what is there in one call and not in three. run runs functions
// side by side. What fails is left to who looks at the file itself.
func (v *View) Describe(run func(func()), files []string) {
	d, ok := v.Host.(host.Describer)
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
			v.mu.Lock()
			defer v.mu.Unlock()
			for i, base := range names {
				v.described[dir+base] = infos[i]
			}
		})
	}
}

// Described is a file as it was when the plan began to look at the tree.
func (v *View) Described(name string) (*host.Info, error) {
	v.mu.Lock()
	info, ok := v.described[name]
	v.mu.Unlock()
	if ok && !v.belowGoing(name) {
		return info, nil
	}
	return v.Lstat(name)
}
