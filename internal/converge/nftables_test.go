package converge_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
	"github.com/berth-dev/berth/internal/host/memory"
)

var (
	theirs = host.FilterTable{Name: "theirs", Chains: []host.FilterChain{{Name: "c", Hook: "input", Drops: []host.Drop{{To: netip.MustParseAddr("192.0.2.9"), TCPPort: 1}}}}}
	// rules are what filter(80) makes of the machine.
	rules = host.FilterTable{Name: "berth", Chains: []host.FilterChain{{Name: "metadata", Hook: "forward", Priority: -150,
		Drops: []host.Drop{{To: netip.MustParseAddr("169.254.169.254"), TCPPort: 80, Comment: "why"}}}}}
)

func filter(port uint16) *desired.PacketFilter {
	return &desired.PacketFilter{Table: "berth", Chains: []desired.FilterChain{{Name: "metadata", Hook: "forward", Priority: -150,
		Drop: []desired.Drop{{To: netip.MustParseAddr("169.254.169.254"), TCPPort: port, Comment: "why"}}}}}
}

// filterTable is a table as the machine has it.
func filterTable(h *machine, name string) *host.FilterTable {
	table, err := h.FilterTable(tctx, name)
	must(err)
	return table
}

func tables(t *testing.T, what string, h *machine, want *host.FilterTable) {
	t.Helper()
	if diff := cmp.Diff(want, filterTable(h, "berth"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
	if !filterTable(h, "theirs").Equal(&theirs) {
		t.Errorf("%s: the table of others is %+v", what, filterTable(h, "theirs"))
	}
}

func filtering() *machine {
	h := newMachine()
	h.PutTable(theirs)
	return h
}

// A table comes, changes, and goes, and nobody else's does. It is read before it is
// written: where it is as wanted there is no write.
func TestPacketFilter(t *testing.T) {
	h := filtering()
	p := runs(t, h, sealed(t, filter(80)))
	if len(p.Actions) != 1 || p.Actions[0].Verb != "set" || p.Actions[0].Reason != "the table is absent" {
		t.Errorf("%+v", p.Actions)
	}
	tables(t, "set", h, &rules)
	converged(t, h, sealed(t, filter(80)))
	rec := effect.Record(h)
	if _, err := engine(rec, &providers{}).Apply(t.Context(), sealed(t, filter(80))); err != nil {
		t.Fatal(err)
	}
	if writes := slices.ContainsFunc(rec.Lines(), func(l string) bool { return strings.HasPrefix(l, "replace-table") }); writes {
		t.Error("written again")
	}
	changed := runs(t, h, sealed(t, filter(8080)))
	if len(changed.Actions) != 1 || !strings.Contains(changed.Actions[0].Reason, "lacks chain metadata at forward -150: drop tcp to 169.254.169.254 port 8080") {
		t.Errorf("%+v", changed.Actions)
	}
	want := rules
	want.Chains = []host.FilterChain{rules.Chains[0]}
	want.Chains[0].Drops = []host.Drop{{To: rules.Chains[0].Drops[0].To, TCPPort: 8080, Comment: "why"}}
	tables(t, "changed", h, &want)
	gone := runs(t, h, sealed(t))
	if len(gone.Actions) != 1 || gone.Actions[0].Verb != "delete" {
		t.Errorf("%+v", gone.Actions)
	}
	tables(t, "withdrawn", h, nil)
	converged(t, h, sealed(t))
}

// Whatever others do to the table is drift, and repaired.
func TestPacketFilterDrift(t *testing.T) {
	for name, c := range map[string]struct {
		table  *host.FilterTable
		reason string
	}{
		"emptied":         {nil, "the table is absent"},
		"without rules":   {&host.FilterTable{Name: "berth"}, "lacks chain metadata at forward -150"},
		"a foreign rule":  {&host.FilterTable{Name: "berth", Chains: rules.Chains, Other: []string{"rule 1 of chain metadata"}}, "rule 1 of chain metadata is not berth's"},
		"a chain more":    {&host.FilterTable{Name: "berth", Chains: append(slices.Clone(rules.Chains), host.FilterChain{Name: "x", Hook: "input"})}, "has chain x at input 0"},
		"twice the rule":  {&host.FilterTable{Name: "berth", Chains: []host.FilterChain{{Name: "metadata", Hook: "forward", Priority: -150, Drops: append(slices.Clone(rules.Chains[0].Drops), rules.Chains[0].Drops...)}}}, "the order of the rules differs"},
		"another comment": {&host.FilterTable{Name: "berth", Chains: []host.FilterChain{{Name: "metadata", Hook: "forward", Priority: -150, Drops: []host.Drop{{To: rules.Chains[0].Drops[0].To, TCPPort: 80}}}}}, "lacks chain metadata at forward -150: drop tcp to 169.254.169.254 port 80 why"},
	} {
		t.Run(name, func(t *testing.T) {
			h := filtering()
			runs(t, h, sealed(t, filter(80)))
			h.FlushTables()
			h.PutTable(theirs)
			if c.table != nil {
				h.PutTable(*c.table)
			}
			p := runs(t, h, sealed(t, filter(80)))
			if len(p.Actions) != 1 || p.Actions[0].Reason != c.reason {
				t.Errorf("%+v", p.Actions)
			}
			tables(t, "repaired", h, &rules)
			converged(t, h, sealed(t, filter(80)))
		})
	}
}

// A kernel that can't filter fails the run before anything changes; under another
// root the rules wait for the first boot.
func TestPacketFilterOutOfReach(t *testing.T) {
	h := filtering()
	h.NoPacketFilter(syscall.EPROTONOSUPPORT)
	before := h.Tree()
	_, err := engine(h, &providers{}).Apply(t.Context(), sealed(t, filter(80), managed("/etc/x", "x\n")))
	if !errors.Is(err, syscall.EPROTONOSUPPORT) || !strings.Contains(err.Error(), "check nftables:berth: read table inet berth of nftables") {
		t.Errorf("error %v", err)
	}
	if _, err := h.Lstat("/etc/x"); err == nil {
		t.Errorf("changed all the same: %s", cmp.Diff(before, h.Tree()))
	}
	p, err := engineOffline(h, &providers{}).Plan(t.Context(), sealed(t, filter(80)))
	if err != nil || !p.Empty() || len(p.Deferred) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Two contracts share a table that both want alike; what they want otherwise is
// refused with both named.
func TestPacketFilterOwners(t *testing.T) {
	h := filtering()
	runs(t, h, sealed(t, filter(80)))
	runs(t, h, of(desired.OwnerOSC, sealed(t, filter(80))))
	refused(t, second(engine(h, &providers{}).Plan(t.Context(), of(desired.OwnerOSC, sealed(t, filter(81))))), "nftables:berth", desired.OwnerOSC, desired.OwnerAKS)
	runs(t, h, sealed(t))
	tables(t, "one of two gone", h, &rules)
	runs(t, h, of(desired.OwnerOSC, sealed(t)))
	tables(t, "both gone", h, nil)
}

// A kill, an error or a power cut at any effect of coming, changing and going.
func TestPacketFilterFaultsAnywhere(t *testing.T) {
	steps := []*desired.State{sealed(t, filter(80), managed("/etc/x", "80\n")), sealed(t, filter(81), managed("/etc/x", "81\n")), sealed(t)}
	for name, after := range map[string]struct {
		fault effect.Kind
		then  func(*machine)
	}{
		"error":     {effect.Fail, func(*machine) {}},
		"kill":      {effect.StopBefore, (*memory.Host).Kill},
		"late kill": {effect.StopAfter, (*memory.Host).Kill},
		"power cut": {effect.StopAfter, func(h *machine) { h.PowerCut(memory.NamesOnly); h.Boot(); h.PutTable(theirs) }},
		"all lost":  {effect.StopAfter, func(h *machine) { h.PowerCut(memory.LoseAll); h.Boot(); h.PutTable(theirs) }},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range steps {
				for n, hit := 1, true; hit; n++ {
					h := filtering()
					for _, s := range steps[:i] {
						runs(t, h, s)
					}
					want := undisturbedTable(t, steps[:i+1])
					in := effect.Inject(h, effect.Plan{{At: n, Kind: after.fault, Err: syscall.EIO}})
					_, err := engine(in, &providers{}).Apply(t.Context(), steps[i])
					if hit = in.Hit() != nil; hit && err == nil && after.fault == effect.Fail {
						t.Fatalf("step %d, effect %d: nobody saw %v", i, n, in.Hit())
					}
					after.then(h)
					runs(t, h, steps[i])
					converged(t, h, steps[i])
					tables(t, "after the fault", h, want)
				}
			}
		})
	}
}

func undisturbedTable(t *testing.T, steps []*desired.State) *host.FilterTable {
	h := filtering()
	for _, s := range steps {
		runs(t, h, s)
	}
	return filterTable(h, "berth")
}
