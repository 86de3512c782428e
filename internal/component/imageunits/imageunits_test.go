package imageunits

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

// An image has what it has: nothing else is asked of it.
func TestResources(t *testing.T) {
	for name, c := range map[string]struct {
		s    Settings
		want []string
	}{
		"nothing": {Settings{LocalDNS: true}, nil},
		"everything": {Settings{Has: Names(), LocalDNS: true},
			[]string{"aks-log-collector.timer", "localdns-exporter.socket", "node-exporter.service", "node-exporter-restart.path", "snapshot-update.timer"}},
		"no name server": {Settings{Has: Names()},
			[]string{"aks-log-collector.timer", "node-exporter.service", "node-exporter-restart.path", "snapshot-update.timer"}},
		"some": {Settings{Has: []string{"snapshot-update.timer", "other.service"}, LocalDNS: true}, []string{"snapshot-update.timer"}},
	} {
		var got []string
		for _, r := range golden.State(t, Resources(c.s)).Resources {
			u := r.(*desired.Unit)
			got = append(got, u.Name)
			if u.Enablement != desired.Enabled || u.Activation != desired.Started || u.Optional != (u.Name != "snapshot-update.timer") {
				t.Errorf("%s: %+v", name, u)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A node of two address families can't do without an address of the second one.
func TestSecondFamily(t *testing.T) {
	if rs := SecondFamily([]string{"node-exporter.service"}); rs != nil {
		t.Errorf("an image without it: %v", rs)
	}
	want := []desired.Resource{&desired.Unit{Name: "dhcpv6.service", Enablement: desired.Enabled, Activation: desired.Started}}
	if diff := cmp.Diff(want, SecondFamily(Names())); diff != "" {
		t.Error(diff)
	}
}

// The figures of the name server are at the node's address alone, whatever the image says.
func TestExporterAddress(t *testing.T) {
	for addresses, want := range map[string]string{
		"10.0.0.4": "10.0.0.4:9353", "10.0.0.4,2001:db8::4": "10.0.0.4:9353", "2001:db8::4": "[2001:db8::4]:9353",
	} {
		st := golden.State(t, Resources(Settings{Has: Names(), LocalDNS: true, Addresses: addresses}))
		text := string(golden.File(t, st, ExporterDropIn).Content.Data())
		if !strings.HasSuffix(text, "[Socket]\nListenStream=\nListenStream="+want+"\n") {
			t.Errorf("%s: %s", addresses, text)
		}
		u := st.Lookup(desired.UnitID(LocalDNSExporter)).(*desired.Unit)
		if !slices.Contains(u.After, desired.FileID(ExporterDropIn)) {
			t.Errorf("the socket listens before it is told where: %v", u.After)
		}
	}
	for _, addresses := range []string{"", "node"} {
		if rs := Resources(Settings{Has: []string{LocalDNSExporter}, LocalDNS: true, Addresses: addresses}); len(rs) != 1 {
			t.Errorf("%q: %v", addresses, rs)
		}
	}
}
