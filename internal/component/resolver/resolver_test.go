package resolver

import (
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	if rs := Resources(false); rs != nil {
		t.Errorf("without systemd-resolved: %v", rs)
	}
	st := golden.State(t, Resources(true))
	if l, ok := st.Lookup(desired.LinkID("/etc/resolv.conf")).(*desired.Link); !ok || l.Target != "/run/systemd/resolve/resolv.conf" {
		t.Errorf("%+v", l)
	}
}
