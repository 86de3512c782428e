// Package kubeletconfig reads what a machine's kubelet runs with, or will.
package kubeletconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Machine is where kubelet runs, or is to run.
type Machine struct {
	Host host.Host
	// Wanted are files of a document that is not in force yet: they count before those that
	// are there. nil is a node, whose kubelet runs already.
	Wanted map[string]*desired.File
}

// Read puts together what kubelet reads as kubelet does: its file, those of others in its
// directory, its flags. On a node they are those of the kubelet that runs, else of its unit;
// before, those that the document leads to, with what others have put there.
func (m Machine) Read(ctx context.Context) (map[string]any, error) {
	args, err := m.kubeletArgs(ctx)
	if err != nil {
		return nil, err
	}
	c, err := kubelet.ReadCommandLine(args)
	if err != nil {
		return nil, err
	}
	var file []byte
	if c.File != "" {
		if file, err = m.read(c.File); err != nil {
			return nil, err
		}
	}
	dropIns, err := m.dropIns(c.Dir)
	if err != nil {
		return nil, err
	}
	return c.Merge(file, dropIns...)
}

// kubeletArgs are kubelet's arguments; nil where there is no kubelet.
func (m Machine) kubeletArgs(ctx context.Context) ([]string, error) {
	words, err := m.running(ctx)
	if len(words) == 0 && err == nil {
		words, err = m.defined(ctx)
	}
	switch {
	case err != nil || len(words) == 0:
		return nil, err
	case path.Base(words[0]) != "kubelet":
		return nil, fmt.Errorf("%s runs %s, which may be given a configuration of its own", kubelet.Unit, words[0])
	}
	return words[1:], nil
}

// running is the command line of the kubelet that runs; nil where none does, or where the
// document brings another one.
func (m Machine) running(ctx context.Context) ([]string, error) {
	if m.Wanted != nil {
		return nil, nil
	}
	u, err := m.Host.Unit(ctx, kubelet.Unit)
	if err != nil || u.MainPID == 0 {
		return nil, err
	}
	text, err := m.Host.ReadFile(fmt.Sprintf("/proc/%d/cmdline", u.MainPID))
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH):
		return nil, nil // it has just ended
	case err != nil || len(text) == 0:
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

// defined is the command line that kubelet's unit leads to; nil where there is no unit.
func (m Machine) defined(ctx context.Context) ([]string, error) {
	u, err := m.Host.Unit(ctx, kubelet.Unit)
	if err != nil {
		return nil, err
	}
	definition := u.FragmentPath
	if m.Wanted[kubelet.UnitFile] != nil {
		definition = kubelet.UnitFile
	}
	if definition == "" {
		return nil, nil
	}
	below, err := m.below(kubelet.DropInDir)
	if err != nil {
		return nil, err
	}
	// Of files of one name, that of /etc counts.
	named := map[string]string{}
	for _, p := range slices.Concat(u.DropInPaths, below) {
		if path.Ext(p) == ".conf" {
			named[path.Base(p)] = p
		}
	}
	paths := []string{definition}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		paths = append(paths, named[name])
	}
	texts := make([]string, len(paths))
	for i, p := range paths {
		b, err := m.read(p)
		if err != nil {
			return nil, err
		}
		texts[i] = string(b)
	}
	return unitfile.Command(texts, func(p string) ([]byte, error) {
		b, err := m.read(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return b, err
	})
}

// dropIns are the files of kubelet's directory that kubelet reads, in its order.
func (m Machine) dropIns(dir string) ([][]byte, error) {
	if dir == "" {
		return nil, nil
	}
	paths, err := m.below(dir)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, p := range paths {
		if path.Ext(p) != ".conf" {
			continue
		}
		b, err := m.read(p)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// below are the files below a directory, in the order of filepath.WalkDir; none where it is
// not there.
func (m Machine) below(dir string) ([]string, error) {
	paths, err := m.walk(dir)
	if err != nil {
		return nil, err
	}
	for p := range m.Wanted {
		if strings.HasPrefix(p, dir+"/") && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) })
	return paths, nil
}

func (m Machine) walk(dir string) ([]string, error) {
	names, err := m.Host.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, name := range names {
		p := path.Join(dir, name)
		info, err := m.Host.Lstat(p)
		if err != nil {
			return nil, err
		}
		if !info.Mode.IsDir() {
			out = append(out, p)
			continue
		}
		more, err := m.walk(p)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, err
}

// read is a file as it is, or will be.
func (m Machine) read(p string) ([]byte, error) {
	if f := m.Wanted[p]; f != nil {
		return f.Content.Data(), nil
	}
	return Follow(m.Host, p)
}

// mostLinks is how many links lead to a file at most.
const mostLinks = 8

// Follow reads a file, through links. What is masked is empty.
func Follow(h host.FS, p string) ([]byte, error) {
	for range mostLinks {
		target, err := h.Readlink(p)
		if err != nil {
			break
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(p), target)
		}
		p = path.Clean(target)
	}
	if p == "/dev/null" {
		return nil, nil
	}
	return h.ReadFile(p)
}
