package faults_test

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// ofBlock breaks berth's part of a file of others, which is all that is in it here.
func ofBlock(b *desired.Block) []mutation {
	theirs := one(b, "with a line of others", "", func(h *memory.Host) { edit(h, b.Path, add("THEIRS=1\n")) }).nothing()
	out := []mutation{
		theirs.leaving(b.Path),
		one(b, "emptied", "update", func(h *memory.Host) { edit(h, b.Path, empty) }),
		one(b, "chmodded", "", func(h *memory.Host) { check(h.Chmod(b.Path, 0o640)) }).nothing().leaving(b.Path),
		one(b, "removed", "create", func(h *memory.Host) { check(h.Remove(b.Path)) }),
		refused(b, "made a link", b.Path, func(h *memory.Host) {
			check(h.Remove(b.Path))
			h.PutLink("/mnt", b.Path, 0)
		}),
	}
	for _, key := range slices.Sorted(maps.Keys(b.Keys)) {
		line := key + "=" + b.Keys[key]
		out = append(out, one(b, "with another "+key, "update", func(h *memory.Host) {
			edit(h, b.Path, func(text string) string { return strings.Replace(text, line, key+"=other", 1) })
		}))
	}
	return out
}

func ofSysfs(h *memory.Host, s *desired.Sysfs) []mutation {
	var out []mutation
	for _, word := range strings.Fields(content(h, s.Path)) {
		if word = strings.Trim(word, "[]"); word != s.Value {
			out = append(out, one(s, "set to "+word, "set", func(h *memory.Host) { check(h.WriteValue(s.Path, []byte(word))) }))
		}
	}
	return out
}

func ofPacketFilter(p *desired.PacketFilter) []mutation {
	with := func(change func(*host.FilterTable)) func(h *memory.Host) {
		return func(h *memory.Host) {
			t, err := h.FilterTable(tctx, p.Table)
			check(err)
			change(t)
			h.PutTable(*t)
		}
	}
	more := host.Drop{To: netip.MustParseAddr("192.0.2.1"), TCPPort: 1}
	return []mutation{
		one(p, "deleted", "set", func(h *memory.Host) { check(h.DeleteFilterTable(tctx, p.Table)) }),
		one(p, "with another rule", "set", with(func(t *host.FilterTable) { t.Chains[0].Drops = append(t.Chains[0].Drops, more) })),
		one(p, "emptied", "set", with(func(t *host.FilterTable) { t.Chains = nil })),
		one(p, "with rules that berth can't read", "set", with(func(t *host.FilterTable) { t.Other = []string{"a counter"} })),
	}
}

func ofSwap(s *desired.Swap) []mutation {
	unit := strings.TrimPrefix(s.Path, "/") + ".swap"
	unused := func(what, verb string, do func(h *memory.Host)) mutation { // the kernel lets nobody change it while it is in use
		m := one(s, what, verb, func(h *memory.Host) { check(h.StopUnit(tctx, unit)); do(h) })
		m.plan, m.jobs = append(m.plan, "start unit:"+unit), []string{"start " + unit}
		return m
	}
	return []mutation{
		one(s, "chmodded", "update", func(h *memory.Host) { check(h.Chmod(s.Path, 0o644)) }),
		unused("removed", "create", func(h *memory.Host) { check(h.Remove(s.Path)) }),
		refused(s, "made a file of somebody else", "not overwritten", func(h *memory.Host) {
			check(h.StopUnit(tctx, unit))
			h.Put(s.Path, "theirs", 0o600)
		}),
	}
}

func ofMount(m *desired.Mount) []mutation {
	again := func(options ...string) func(h *memory.Host) {
		return func(h *memory.Host) {
			check(h.Unmount(tctx, m.Target))
			check(h.Mount(tctx, host.Mount{Source: m.Source, Target: m.Target, Type: m.FSType, Options: options}))
		}
	}
	return []mutation{
		one(m, "gone", "mount", func(h *memory.Host) { check(h.Unmount(tctx, m.Target)) }),
		{name: string(m.ID()) + " with other options", do: again("noexec", "ro"), plan: []string{"unmount " + string(m.ID()), "mount " + string(m.ID())}},
	}
}

func ofLink(l *desired.Link) []mutation {
	return []mutation{
		one(l, "removed", "create", func(h *memory.Host) { check(h.Remove(l.Path)) }),
		one(l, "leading elsewhere", "update", func(h *memory.Host) { check(h.Remove(l.Path)); h.PutLink("/mnt", l.Path, 0) }),
		one(l, "made a file", "update", func(h *memory.Host) { check(h.Remove(l.Path)); h.Put(l.Path, "x", 0o644) }),
		one(l, "made an empty directory", "update", func(h *memory.Host) { check(h.Remove(l.Path)); h.PutDir(l.Path) }),
		refused(l, "made a directory with entries", l.Path, func(h *memory.Host) { check(h.Remove(l.Path)); h.Put(l.Path+"/entry", "", 0o644) }),
	}
}

func ofImage(i *desired.Image) []mutation {
	return []mutation{one(i, "deleted", "import", func(h *memory.Host) { check(h.Remove(imageFile)) })}
}

// ofNode breaks what the cluster says of the machine. kubelet of the model creates no
// second Node: a deleted one is the cluster's own test.
func ofNode(n *desired.NodeObject) []mutation {
	var out []mutation
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		for what, change := range map[string]func(labels map[string]string){
			"without ":      func(labels map[string]string) { delete(labels, key) },
			"with another ": func(labels map[string]string) { labels[key] = "other" },
		} {
			out = append(out, one(n, what+key, "update", func(h *memory.Host) { relabel(h, change) }))
		}
	}
	return append(out, one(n, "with a label of others", "", func(h *memory.Host) {
		relabel(h, func(labels map[string]string) { labels["theirs"] = "1" })
	}).nothing().leaving(nodeObject))
}

func relabel(h *memory.Host, change func(map[string]string)) {
	labels := map[string]string{}
	check(json.Unmarshal([]byte(content(h, nodeObject)), &labels))
	change(labels)
	h.Put(nodeObject, labelText(labels), 0o600)
}
