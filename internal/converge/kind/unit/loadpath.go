package unit

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/unitname"
)

// loadPath is the tree of unit files as the plan leaves it.
type loadPath struct{ v *kind.View }

// stands says whether there will be something at a path.
func (l loadPath) stands(at string) (bool, error) {
	if l.v.Expected(at) != nil {
		return true, nil
	}
	info, err := l.v.Lstat(at)
	return info != nil && !l.v.Deletes(at), err
}

// search finds the definition of a unit that systemd has not loaded: under another root, or
// one that shows when another goes. A mask that the plan finds goes; stay: it does not, and a unit
// that is masked has none.
func (l loadPath) search(unit string, stay bool) (string, error) {
	for _, at := range places(unit) {
		there, err := l.stands(at)
		if err != nil {
			return "", err
		}
		switch {
		case !there:
		case l.v.Expected(at) != nil || !l.isMask(at):
			return at, nil
		case stay:
			return "", nil
		}
	}
	return "", nil
}

// fragment is the definition that systemd will find of a unit: the present one, unless the plan
// takes that away or has a stronger one.
func (l loadPath) fragment(unit, present string) (string, error) {
	there, err := present != "", error(nil)
	if there {
		there, err = l.stands(present)
	}
	if err != nil {
		return "", err
	}
	if !there {
		return l.search(unit, false)
	}
	for _, at := range places(unit) {
		if at == present {
			break
		}
		if q := l.v.Expected(at); q != nil && q.Target != noDevice {
			return at, nil
		}
	}
	return present, nil
}

// generated says whether a generator has made a definition, which shows when a mask goes.
func (l loadPath) generated(unit string) (bool, error) {
	for _, dir := range []string{"/run/systemd/generator.early", "/run/systemd/generator", "/run/systemd/generator.late"} {
		if info, err := l.v.Lstat(dir + "/" + unit); err != nil || info != nil {
			return info != nil, err
		}
	}
	return false, nil
}

// noDevice is where a mask leads.
const noDevice = "/dev/null"

// masks are the paths at which a mask of a unit may lie, the stronger first.
func masks(unit string) []string { return places(unit)[:2] }

// masked says whether a mask is what systemd will find of the unit.
func (l loadPath) masked(unit string) (bool, error) {
	for _, at := range masks(unit) {
		if there, err := l.stands(at); err != nil || there {
			return l.isMask(at), err
		}
	}
	return false, nil
}

func (l loadPath) isMask(at string) bool {
	to, err := l.linkAt(at)
	return err == nil && to == noDevice
}

// linkAt is where a link leads that is at a path or will be; "" where there is none.
func (l loadPath) linkAt(at string) (string, error) {
	target := ""
	if q := l.v.Expected(at); q != nil {
		target = q.Target
	} else {
		info, err := l.v.Lstat(at)
		if err != nil || info == nil || info.Mode&fs.ModeSymlink == 0 {
			return "", err
		}
		if target, err = l.v.Host.Readlink(at); err != nil {
			return "", err
		}
	}
	if target == "" {
		return "", nil
	}
	return l.v.Real(host.Splice(path.Dir(at), target, "")), nil
}

// maxLinks bounds how many links are followed to a definition, as systemd does.
const maxLinks = 64

// definedAt is what systemctl enable makes of a name and where its definition was found: a link
// from there to another definition is another name of that unit, one that leads elsewhere has
// the definition itself at its end (install_info_traverse, shared/install.c of systemd).
func (l loadPath) definedAt(unit, at string) (name, fragment string, err error) {
	for range maxLinks {
		if at == "" {
			break
		}
		to, err := l.linkAt(at)
		switch {
		case err != nil || to == "":
			return unit, at, err
		case host.InKernelTree(to):
			return unit, "", nil
		case !slices.Contains(dirs, path.Dir(to)) || slices.Contains(definers(unit), path.Base(to)):
			at = to
			continue
		}
		name = path.Base(to)
		if instance := unitname.Instance(unit); unitname.IsTemplate(name) && instance != "" {
			name = strings.Replace(name, "@", "@"+instance, 1)
		}
		unit = name
		if at, err = l.search(unit, true); err != nil {
			return "", "", err
		}
	}
	return unit, "", nil
}

// text is what a path will hold; links are followed.
func (l loadPath) text(at string) (string, error) {
	for range maxLinks {
		to, err := l.linkAt(at)
		switch {
		case err != nil || host.InKernelTree(to):
			return "", err
		case to != "":
			at = to
			continue
		}
		if q := l.v.Expected(at); q != nil && q.Stored == "" {
			return string(q.Content.Data()), nil
		}
		data, err := l.v.Host.ReadFile(at)
		return string(data), err
	}
	return "", &fs.PathError{Op: "read", Path: at, Err: syscall.ELOOP}
}
