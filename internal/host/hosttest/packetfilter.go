package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/internal/host"
)

// filterCases need the rights of root in the network namespace.
var filterCases = []testCase{
	{"packet filter: replace, read, delete", filterLife},
	{"packet filter: two tables", filterTables},
	{"packet filter: many at once", filterAtOnce},
	{"packet filter: names", filterNames},
	{"packet filter: errors", filterErrors},
}

const testTable = "berth-conformance"

func drops(name, hook string, priority int, rules ...host.Drop) host.FilterTable {
	return host.FilterTable{Name: name, Chains: []host.FilterChain{{Name: "c", Hook: hook, Priority: priority, Drops: rules}}}
}

func expectTable(t *testing.T, h host.PacketFilter, name string, want *host.FilterTable) {
	t.Helper()
	got, err := h.FilterTable(t.Context(), name)
	must(t, err)
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" || !got.Equal(want) {
		t.Errorf("table %s (-want +got): %s", name, diff)
	}
}

// filterUntil deletes a table when the test ends.
func filterUntil(t *testing.T, h host.PacketFilter, name string) {
	t.Cleanup(func() { _ = h.DeleteFilterTable(context.Background(), name) })
}

func filterLife(t *testing.T, h host.Host, _ string) {
	filterUntil(t, h, testTable)
	expectTable(t, h, testTable, nil)
	first := drops(testTable, "forward", 0,
		host.Drop{To: netip.MustParseAddr("192.0.2.1"), TCPPort: 80, Comment: "why not"}, host.Drop{To: netip.MustParseAddr("192.0.2.1"), TCPPort: 32526})
	second := drops(testTable, "output", -150, host.Drop{To: netip.MustParseAddr("2001:db8::1"), TCPPort: 443})
	second.Chains = append(second.Chains, host.FilterChain{Name: "empty", Hook: "input", Priority: 10})
	third := drops(testTable, "prerouting", -300, host.Drop{To: netip.MustParseAddr("192.0.2.1"), TCPPort: 80})
	third.Chains[0].Untracked = []host.Untracked{{To: netip.MustParseAddr("192.0.2.1"), Protocol: "udp", Port: 53, Comment: "why not"},
		{To: netip.MustParseAddr("2001:db8::1"), Protocol: "tcp", Port: 53}}
	for _, want := range []host.FilterTable{first, first, second, third, {Name: testTable}} {
		must(t, h.ReplaceFilterTable(t.Context(), want))
		expectTable(t, h, testTable, &want)
	}
	must(t, h.DeleteFilterTable(t.Context(), testTable))
	expectTable(t, h, testTable, nil)
}

func filterTables(t *testing.T, h host.Host, _ string) {
	const other = testTable + "-2"
	filterUntil(t, h, testTable)
	filterUntil(t, h, other)
	one := drops(testTable, "forward", 0, host.Drop{To: netip.MustParseAddr("192.0.2.1"), TCPPort: 80})
	two := drops(other, "forward", 0, host.Drop{To: netip.MustParseAddr("192.0.2.2"), TCPPort: 80})
	must(t, h.ReplaceFilterTable(t.Context(), one))
	must(t, h.ReplaceFilterTable(t.Context(), two))
	expectTable(t, h, testTable, &one)
	must(t, h.DeleteFilterTable(t.Context(), testTable))
	expectTable(t, h, other, &two)
}

// filterAtOnce has some make a table at the same time that is not there: it is what
// each of them made, and nothing of it is there twice.
func filterAtOnce(t *testing.T, h host.Host, _ string) {
	filterUntil(t, h, testTable)
	want := drops(testTable, "forward", 0, host.Drop{To: netip.MustParseAddr("192.0.2.1"), TCPPort: 80})
	for range 5 {
		errs := make(chan error, 4)
		for range cap(errs) {
			go func() { errs <- h.ReplaceFilterTable(t.Context(), want) }()
		}
		for range cap(errs) {
			must(t, <-errs)
		}
		expectTable(t, h, testTable, &want)
		must(t, h.DeleteFilterTable(t.Context(), testTable))
	}
}

// filterNames lists a table and its chain for as long as they are there, and the table
// that has none.
func filterNames(t *testing.T, h host.Host, _ string) {
	const other = testTable + "-2"
	filterUntil(t, h, testTable)
	filterUntil(t, h, other)
	of := func() (names []string) {
		all, err := h.FilterNames(t.Context())
		must(t, err)
		for _, n := range all {
			if n.Table == testTable || n.Table == other {
				names = append(names, n.String())
			}
		}
		slices.Sort(names)
		return names
	}
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, of()); diff != "" {
			t.Error(diff)
		}
	}
	expect()
	must(t, h.ReplaceFilterTable(t.Context(), drops(testTable, "forward", 0)))
	expect("inet "+testTable, "inet "+testTable+" c")
	must(t, h.ReplaceFilterTable(t.Context(), host.FilterTable{Name: other}))
	expect("inet "+testTable, "inet "+testTable+" c", "inet "+other)
	must(t, h.DeleteFilterTable(t.Context(), testTable))
	expect("inet " + other)
}

func filterErrors(t *testing.T, h host.Host, _ string) {
	want(t, "delete what is not there", h.DeleteFilterTable(t.Context(), testTable), fs.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.FilterTable(ctx, testTable)
	if _, err := h.FilterNames(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("list, cancelled: %v", err)
	}
	for _, err := range []error{err, h.ReplaceFilterTable(ctx, host.FilterTable{Name: testTable}), h.DeleteFilterTable(ctx, testTable)} {
		want(t, "cancelled", err, context.Canceled)
	}
	filterUntil(t, h, testTable)
	good := drops(testTable, "forward", 0, host.Drop{To: netip.MustParseAddr("192.0.2.1"), TCPPort: 80})
	must(t, h.ReplaceFilterTable(t.Context(), good))
	if err := h.ReplaceFilterTable(t.Context(), drops(testTable, "sideways", 0)); err == nil {
		t.Error("there is no such hook")
	}
	expectTable(t, h, testTable, &good)
}

func filterRefused(t *testing.T, h host.Host, _ string) {
	_, err := h.FilterTable(t.Context(), testTable)
	_, listErr := h.FilterNames(t.Context())
	for _, err := range []error{err, listErr, h.ReplaceFilterTable(t.Context(), host.FilterTable{}), h.DeleteFilterTable(t.Context(), testTable)} {
		if !errors.Is(err, host.ErrOtherRoot) {
			t.Error(err)
		}
	}
}
