package streaming

import (
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	st := golden.State(t, Resources(nil))
	if len(st.Resources) != 3 {
		t.Error(st.Resources)
	}
	for _, r := range st.Resources {
		if u := r.(*desired.Unit); !IsUnit(u.Name) || u.Activation != desired.Started || u.Enablement != desired.Enabled {
			t.Errorf("%+v", u)
		}
	}
	if IsUnit("containerd.service") {
		t.Error("containerd is none of them")
	}
}
