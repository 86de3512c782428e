package oci

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// state is what is known of a path.
type state int

const (
	// unknown: a layer that is not read yet decides.
	unknown state = iota
	absent
	found
)

// location is where a regular file lies.
type location struct {
	layer int
	path  string
}

// lookup is what is known of a wanted path.
type lookup struct {
	state state
	location
	// guess is where the file lies if the next layer has it there and makes no
	// links on the way; "" if that can't be said.
	guess string
}

// view is the file system that the layers read so far make, seen from the top.
type view struct {
	seed maphash.Seed
	// read are the indexes of all layers, nil for those that are not read.
	read []*index
	// room is for all of them.
	room room
}

func newView(layers []v1.Descriptor, r room) *view {
	return &view{seed: maphash.MakeSeed(), read: make([]*index, len(layers)), room: r}
}

// next is the topmost layer that is not read, -1 if there is none.
func (v *view) next() int {
	for n, ix := range slices.Backward(v.read) {
		if ix == nil {
			return n
		}
	}
	return -1
}

func (v *view) add(layer int) { v.read[layer] = newIndex(v.seed, &v.room) }

// look says what a clean path is, without following links, for the layers from
// top down.
func (v *view) look(name string, top int) (byte, int, state) {
	for n := top; n >= 0; n-- {
		ix := v.read[n]
		if ix == nil {
			return 0, n, unknown
		}
		m := ix.mark(name)
		if m&kindMask != 0 {
			return m & kindMask, n, found
		}
		if m&markWhiteout != 0 || ix.hides(name) {
			return 0, n, absent
		}
	}
	return 0, -1, absent
}

// hides says that the layer lets nothing below it show through at that path,
// because of what it does to the path's parents.
func (ix *index) hides(name string) bool {
	for name != "" {
		name = parent(name)
		m := ix.mark(name)
		if m&(markWhiteout|markOpaque) != 0 {
			return true
		}
		if k := m & kindMask; k != 0 && k != kindDir {
			return true
		}
	}
	return false
}

// maxLinks is as Linux bounds them in one path.
const maxLinks = 40

// walk is the way to a path.
type walk struct {
	v *view
	// at is the directory reached, rest are the parts ahead.
	at    string
	rest  []string
	links int
}

// find follows a path through the image. Its errors are about content that is
// refused, whatever more layers hold.
func (v *view) find(name string) (lookup, error) {
	w := &walk{v: v, rest: strings.Split(name, "/")}
	for len(w.rest) > 0 {
		p, stop, err := w.step()
		if err != nil || stop {
			return p, err
		}
	}
	return lookup{}, errors.New("it is a directory")
}

// step goes to the next part, or says where the way ends.
func (w *walk) step() (p lookup, stop bool, err error) {
	part := w.rest[0]
	switch part {
	case "", ".":
		w.rest = w.rest[1:]
		return lookup{}, false, nil
	case "..":
		if w.at == "" {
			return lookup{}, true, errors.New("a link leads out of the image")
		}
		w.at, w.rest = parent(w.at), w.rest[1:]
		return lookup{}, false, nil
	}
	next := join(w.at, part)
	if len(next) > maxName || len(w.rest) > maxDepth {
		return lookup{}, true, errors.New("its links make a name that is too long")
	}
	kind, layer, s := w.v.look(next, len(w.v.read)-1)
	switch s {
	case unknown:
		return lookup{state: unknown, guess: w.guess(next)}, true, nil
	case absent:
		return lookup{state: absent, location: location{path: join(next, strings.Join(w.rest[1:], "/"))}}, true, nil
	}
	return w.through(next, kind, layer)
}

// guess is the rest of the path taken literally.
func (w *walk) guess(next string) string {
	rest := w.rest[1:]
	if slices.Contains(rest, "..") {
		return ""
	}
	name, err := cleanName(join(next, strings.Join(rest, "/")))
	if err != nil {
		return ""
	}
	return name
}

func join(dir, name string) string {
	if dir == "" || name == "" {
		return dir + name
	}
	return dir + "/" + name
}

// through passes what is at next.
func (w *walk) through(next string, kind byte, layer int) (lookup, bool, error) {
	last := len(w.rest) == 1
	switch {
	case kind == kindDir:
		w.at, w.rest = next, w.rest[1:]
		return lookup{}, false, nil
	case kind == kindSymlink:
		return lookup{}, false, w.follow(w.v.read[layer].links[next])
	case kind == kindOther:
		return lookup{}, true, errors.New("it is neither a regular file nor a link to one")
	case !last:
		return lookup{}, true, fmt.Errorf("%q on the way is a file", next)
	case kind == kindHardLink:
		p, err := w.v.hardLink(next, layer)
		return p, true, err
	}
	return lookup{state: found, location: location{layer, next}}, true, nil
}

func (w *walk) follow(target string) error {
	if w.links++; w.links > maxLinks {
		return fmt.Errorf("more than %d links on the way", maxLinks)
	}
	if strings.HasPrefix(target, "/") {
		w.at = ""
	}
	w.rest = append(strings.Split(target, "/"), w.rest[1:]...)
	return nil
}

// hardLink finds the file whose other name a hard link is: as its layer sees it.
func (v *view) hardLink(name string, layer int) (lookup, error) {
	for range maxLinks {
		target, err := cleanName(v.read[layer].links[name])
		if err != nil {
			return lookup{}, fmt.Errorf("hard link: %w", err)
		}
		kind, at, s := v.look(target, layer)
		switch {
		case s == unknown:
			return lookup{state: unknown}, nil
		case s == absent:
			return lookup{state: absent, location: location{path: target}}, nil
		case kind == kindFile:
			return lookup{state: found, location: location{at, target}}, nil
		case kind != kindHardLink:
			return lookup{}, fmt.Errorf("a hard link to %q, which is no regular file", target)
		}
		name, layer = target, at
	}
	return lookup{}, fmt.Errorf("more than %d hard links on the way", maxLinks)
}
