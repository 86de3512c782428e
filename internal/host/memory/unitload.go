package memory

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// unitDirs are where systemd looks for definitions, first match wins
// (systemd.unit(5)).
var unitDirs = []string{
	"/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator",
	"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/run/systemd/generator.late",
}

// builtin are the targets and other units that every machine has and that are
// active whenever it runs.
var builtin = []string{
	"-.mount", "-.slice", "system.slice", "sysinit.target", "basic.target", "local-fs.target", "remote-fs.target",
	"network.target", "network-pre.target", "network-online.target", "nss-lookup.target", "time-sync.target",
	"multi-user.target", "default.target", "graphical.target", "sockets.target", "timers.target", "paths.target",
	"slices.target", "swap.target", "cloud-init.target", "dbus.service", "dbus.socket",
}

// definition is a unit as the manager loaded it.
type definition struct {
	fragment string
	dropIns  []string
	mtime    time.Time // of the fragment
	newest   time.Time // of the drop-ins
	masked   bool
	settings settings
	wants    []string
	requires []string
	hash     string
	state    string // of the unit file
}

// load reads a unit from the tree; nil if there is none.
func (h *Host) load(name string) *definition {
	d := &definition{settings: settings{}}
	sum := sha256.New()
	read := func(p string) time.Time {
		n, err := h.follow(p, false)
		if err != nil {
			return time.Time{}
		}
		d.settings.merge(string(n.content))
		fmt.Fprintf(sum, "%s\n%d\n%s\n", p, len(n.content), n.content)
		return n.mtime
	}
	fragment, masked := h.fragment(name)
	if fragment == "" && !slices.Contains(builtin, name) {
		return nil
	}
	d.fragment, d.masked, d.state = fragment, masked, h.fileState(name)
	if masked {
		d.mtime = h.mtimeOf(fragment)
		return d
	}
	if fragment != "" {
		d.mtime = read(fragment)
	}
	d.dropIns = h.dropIns(name)
	for _, p := range d.dropIns {
		d.newest = latest(d.newest, read(p))
	}
	d.wants, d.requires = h.linked(name, ".wants"), h.linked(name, ".requires")
	d.hash = fmt.Sprintf("%x", sum.Sum(nil))
	return d
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// unitDir is a directory of definitions that is there.
type unitDir struct {
	path string
	node *inode
}

func (h *Host) unitTree() []unitDir {
	var out []unitDir
	for _, dir := range unitDirs {
		if n, err := h.walkDir(dir, false); err == nil {
			out = append(out, unitDir{dir, n})
		}
	}
	return out
}

// fragment finds the definition; masked is a link to /dev/null or an empty file.
func (h *Host) fragment(name string) (p string, masked bool) {
	for _, candidate := range []string{name, template(name)} {
		for _, dir := range h.unitTree() {
			if dir.node.children[candidate] == nil {
				continue
			}
			p := path.Join(dir.path, candidate)
			if n, err := h.follow(p, false); err == nil && !n.mode.IsDir() {
				return p, len(n.content) == 0
			}
		}
	}
	return "", false
}

// template is foo@.service for foo@bar.service, else empty.
func template(name string) string {
	base, rest, ok := strings.Cut(name, "@")
	if !ok {
		return ""
	}
	return base + "@" + path.Ext(rest)
}

// dropIns are the drop-in files of a unit in the order of their names; of two
// with one name the directory of higher precedence wins, and one that is masked
// is none.
func (h *Host) dropIns(name string) []string {
	found := map[string]string{}
	candidates := dropInDirs(name)
	for _, dir := range h.unitTree() {
		for _, d := range candidates {
			if dir.node.children[d] != nil {
				h.collect(path.Join(dir.path, d), found)
			}
		}
	}
	var out []string
	for _, base := range sortedKeys(found) {
		if n, err := h.follow(found[base], false); err == nil && n.mode.IsRegular() {
			out = append(out, found[base])
		}
	}
	return out
}

func (h *Host) collect(dir string, found map[string]string) {
	n, err := h.follow(dir, false)
	if err != nil {
		return
	}
	for name := range n.children {
		if _, taken := found[name]; !taken && strings.HasSuffix(name, ".conf") {
			found[name] = path.Join(dir, name)
		}
	}
}

// dropInDirs are the directories for the unit, its template, each prefix that
// ends in a dash, and its type.
func dropInDirs(name string) []string {
	out := []string{name + ".d"}
	if t := template(name); t != "" {
		out = append(out, t+".d")
	}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for i := len(stem) - 2; i > 0; i-- {
		if stem[i] == '-' {
			out = append(out, stem[:i+1]+ext+".d")
		}
	}
	return append(out, strings.TrimPrefix(ext, ".")+".d")
}

// unitTypes are the ends of unit names; systemd passes over all other names.
var unitTypes = []string{".service", ".socket", ".target", ".mount", ".automount", ".swap", ".timer", ".path", ".slice", ".scope", ".device"}

// linked are the names of units in the directories NAME.wants or NAME.requires.
func (h *Host) linked(name, suffix string) []string {
	found := map[string]bool{}
	for _, dir := range h.unitTree() {
		if n := dir.node.children[name+suffix]; n != nil {
			for child := range n.children {
				if slices.Contains(unitTypes, path.Ext(child)) {
					found[child] = true
				}
			}
		}
	}
	return sortedKeys(found)
}

func (h *Host) mtimeOf(p string) time.Time {
	n, err := h.follow(p, false)
	if err != nil {
		return time.Time{}
	}
	return n.mtime
}

// outdated is systemd's own test for NeedDaemonReload, with its gaps: it does not
// notice a new definition of higher precedence, nor a drop-in directory that it
// did not know at its last reload.
func (h *Host) outdated(name string, d *definition) bool {
	if d == nil {
		return false
	}
	if d.fragment != "" {
		n, err := h.follow(d.fragment, false)
		if err != nil || n.mtime.After(d.mtime) || (len(n.content) == 0) != d.masked {
			return true
		}
	}
	if d.masked {
		return false
	}
	now := slices.DeleteFunc(h.dropIns(name), func(p string) bool {
		return !h.systemd.dropInDirs[path.Dir(p)] && !slices.Contains(d.dropIns, p)
	})
	if !slices.Equal(now, d.dropIns) {
		return true
	}
	return slices.ContainsFunc(now, func(p string) bool { return h.mtimeOf(p).After(d.newest) })
}
