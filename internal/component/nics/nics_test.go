package nics

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	if rs := Resources(0); rs != nil {
		t.Error(rs)
	}
	if rs := Resources(-1); rs != nil {
		t.Error(rs)
	}
	if rs := Resources(99); len(rs) != Most+1 {
		t.Error(len(rs))
	}
	st := golden.State(t, Resources(2))
	text := string(golden.File(t, st, "/etc/systemd/network/70-berth-eth2.network").Content.Data())
	for _, want := range []string{"[Match]\nName=eth2\n", "DHCP=ipv4\n", "RouteMetric=2200\n", "UseDNS=no\n", "RequiredForOnline=no\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	u := st.Lookup(desired.UnitID(Unit)).(*desired.Unit)
	if len(u.ReloadTriggers) != 2 || u.Activation != desired.AnyActivation {
		t.Errorf("%+v", u)
	}
}
