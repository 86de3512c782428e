package agent

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// stillNamed are the agent's programs that units of others start: without them those
// units would have none. said tells which unit names which.
func stillNamed(h host.Host) (keep []desired.Resource, said []string, err error) {
	led, err := (&ledger.Reader{}).Load(h)
	if err != nil {
		return nil, nil, err
	}
	texts, err := unitTexts(h, led)
	if err != nil {
		return nil, nil, err
	}
	known := map[desired.ID]bool{}
	for _, program := range slices.Sorted(maps.Keys(led.Entries)) {
		by := namedBy(texts, program)
		if by == "" || !goesWith(led, program) {
			continue
		}
		own, err := claim(h, led, program)
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody else has taken it already
		}
		if err != nil {
			return nil, nil, err
		}
		for _, r := range own {
			if !known[r.ID()] {
				known[r.ID()], keep = true, append(keep, r)
			}
		}
		said = append(said, program+": "+by+" names it")
	}
	return keep, said, nil
}

// goesWith says whether a path goes with the agent, and nothing comes back in its place.
func goesWith(led *ledger.Ledger, p string) bool {
	e := led.Entries[p]
	back := e.Was != nil && e.Was.Type != ledger.Gone
	return ledger.IsPath(p) && led.Made(p) && e.Owns(desired.OwnerBerth) && len(e.Others(desired.OwnerBerth)) == 0 && !back &&
		(e.Applied.Type == ledger.Link || e.Applied.Type == ledger.File)
}

// unitTexts are the definitions and drop-ins that are not the agent's, by path.
func unitTexts(h host.FS, led *ledger.Ledger) (map[string]string, error) {
	out := map[string]string{}
	paths, err := pathsIn(h, path.Dir(unitFile))
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		inside := []string{p}
		if path.Ext(p) == ".d" && p != unitFile+".d" {
			if inside, err = pathsIn(h, p); err != nil {
				return nil, err
			}
		}
		for _, p := range inside {
			info, err := ledger.Lstat(h, p)
			if err != nil {
				return nil, err
			}
			if info == nil || !info.IsRegular() || p == unitFile || led.Entries[p].Owns(desired.OwnerBerth) {
				continue
			}
			text, _, err := ledger.ReadFile(h, p)
			if err != nil {
				return nil, err
			}
			out[p] = string(text)
		}
	}
	return out, nil
}

func pathsIn(h host.FS, dir string) ([]string, error) {
	names, err := h.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	var out []string
	for _, name := range names {
		out = append(out, path.Join(dir, name))
	}
	return out, err
}

// namedBy is the first file with a path as a word; "" is none.
func namedBy(texts map[string]string, program string) string {
	for _, p := range slices.Sorted(maps.Keys(texts)) {
		for _, word := range strings.FieldsFunc(texts[p], func(r rune) bool { return strings.ContainsRune(" \t\n\"'=;", r) }) {
			if strings.TrimLeft(word, "@-:+!|") == program { // systemd.service(5), ExecStart=
				return p
			}
		}
	}
	return ""
}
