package memory

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/unitname"
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
	id       string
	fragment string
	dropIns  []string
	mtime    time.Time // of the fragment
	newest   time.Time // of the drop-ins
	masked   bool
	settings settings
	wants    []string // by links, and what it upholds by links: it starts that, too
	requires []string // by links
	hash     string
	state    *string // of the unit file, once somebody has asked
	// ties, triggers and refs are what other units are to this one; each in order.
	ties, triggers, refs []string
}

// load reads the unit of a real name from the tree; nil if there is none.
func (h *Host) load(id string, names []string) *definition {
	d := &definition{id: id, settings: settings{}}
	fragment, masked := h.fragment(id)
	if fragment == "" && !slices.Contains(builtin, id) && path.Ext(id) != ".slice" {
		return nil
	}
	d.fragment, d.masked = fragment, masked
	if masked {
		d.mtime = h.mtimeOf(fragment)
		return d
	}
	h.readFiles(d, names)
	for _, name := range names {
		d.wants = slices.Concat(d.wants, h.linked(name, ".wants"), h.linked(name, ".upholds"))
		d.requires = append(d.requires, h.linked(name, ".requires")...)
	}
	d.relate()
	return d
}

// readFiles reads definition and drop-ins.
func (h *Host) readFiles(d *definition, names []string) {
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
	if d.fragment != "" {
		d.mtime = read(d.fragment)
	}
	d.dropIns = h.dropIns(names)
	for _, p := range d.dropIns {
		d.newest = latest(d.newest, read(p))
	}
	d.hash = fmt.Sprintf("%x", sum.Sum(nil))
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

// unitTree are the directories of definitions. They are looked for once between
// two changes: every change moves the clock.
func (h *Host) unitTree() []unitDir {
	m := &h.systemd
	if m.treeAt.Equal(h.now) {
		return m.tree
	}
	m.tree, m.treeAt = nil, h.now
	for _, dir := range unitDirs {
		if n, err := h.walkDir(dir, false); err == nil {
			m.tree = append(m.tree, unitDir{dir, n})
		}
	}
	return m.tree
}

// fragment finds the definition; masked is a link to /dev/null or an empty file.
func (h *Host) fragment(name string) (p string, masked bool) {
	for _, candidate := range []string{name, unitname.Template(name)} {
		for _, dir := range h.unitTree() {
			if dir.node.children[candidate] == nil {
				continue
			}
			p := path.Join(dir.path, candidate)
			if n, err := h.follow(p, false); err == nil && !n.mode.IsDir() {
				return asFound(p), len(n.content) == 0
			}
		}
	}
	return "", false
}

// asFound is a definition's path as Debian's systemd tells it: it searches /lib,
// which is a link, before /usr/lib. Of drop-ins it tells /usr/lib.
func asFound(p string) string {
	if strings.HasPrefix(p, "/usr/lib/systemd/system/") {
		return strings.TrimPrefix(p, "/usr")
	}
	return p
}

// dropIns are the drop-in files of a unit in the order of their names. Of two with
// one name that wins which is found first: along the directories for each of the
// unit's names, then along them for its type. One that masks stays in the list.
func (h *Host) dropIns(names []string) []string {
	found := map[string]string{}
	tree := h.unitTree()
	for _, name := range names {
		for _, dir := range tree {
			h.collect(dir, dropInDirs(name), found)
		}
	}
	for _, dir := range tree {
		h.collect(dir, []string{strings.TrimPrefix(path.Ext(names[0]), ".") + ".d"}, found)
	}
	var out []string
	for _, base := range sortedKeys(found) {
		out = append(out, found[base])
	}
	return out
}

func (h *Host) collect(dir unitDir, candidates []string, found map[string]string) {
	for _, c := range candidates {
		if dir.node.children[c] == nil {
			continue
		}
		p := path.Join(dir.path, c)
		n, err := h.follow(p, false)
		if err != nil {
			continue
		}
		for name := range n.children {
			if _, taken := found[name]; !taken && h.isDropIn(path.Join(p, name)) {
				found[name] = path.Join(p, name)
			}
		}
	}
}

func (h *Host) isDropIn(p string) bool {
	n, err := h.follow(p, false)
	return err == nil && strings.HasSuffix(p, ".conf") && !n.mode.IsDir()
}

// dropInDirs are the directories for the unit, its template, each prefix that ends in a
// dash, and for an instance the same of each such prefix (seen on systemd 252).
func dropInDirs(name string) []string {
	out := []string{name + ".d"}
	if t := unitname.Template(name); t != "" {
		out = append(out, t+".d")
	}
	ext := path.Ext(name)
	stem, _, _ := strings.Cut(strings.TrimSuffix(name, ext), "@")
	_, at, instance := strings.Cut(name, "@")
	var prefixed []string
	for i := len(stem) - 2; i > 0; i-- {
		if stem[i] != '-' {
			continue
		}
		out = append(out, stem[:i+1]+ext+".d")
		if instance {
			prefixed = append(prefixed, stem[:i+1]+"@"+at+".d", stem[:i+1]+"@"+ext+".d")
		}
	}
	return append(out, prefixed...)
}

// unitTypes are the ends of unit names; systemd passes over all other names.
var unitTypes = []string{".service", ".socket", ".target", ".mount", ".automount", ".swap", ".timer", ".path", ".slice", ".scope", ".device"}

// linked are the names of units in the directories NAME.wants, NAME.requires or NAME.upholds.
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
// did not know when it last looked for a definition, nor a mask by a link. A definition
// is old where the file is newer than the one that was read, a drop-in where it is newer
// than the newest that was read.
func (h *Host) outdated(d *definition, names []string) bool {
	if d == nil {
		return false
	}
	if d.fragment != "" {
		n, err := h.follow(d.fragment, false)
		if err != nil || d.masked && len(n.content) > 0 || !d.masked && n.mtime.After(d.mtime) {
			return true
		}
	}
	if d.masked {
		return false
	}
	now := slices.DeleteFunc(h.dropIns(names), func(p string) bool {
		return !h.systemd.dropInDirs[path.Dir(p)] && !slices.Contains(d.dropIns, p)
	})
	if !slices.Equal(now, d.dropIns) {
		return true
	}
	return slices.ContainsFunc(now, func(p string) bool { return h.mtimeOf(p).After(d.newest) })
}

// learnDropInDirs is what systemd does whenever it looks for a definition.
func (h *Host) learnDropInDirs() {
	h.systemd.dropInDirs = map[string]bool{}
	for _, dir := range h.unitTree() {
		for sub := range dir.node.children {
			if strings.HasSuffix(sub, ".d") {
				h.systemd.dropInDirs[path.Join(dir.path, sub)] = true
			}
		}
	}
}
