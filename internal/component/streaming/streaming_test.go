package streaming

import (
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	st := golden.State(t, Resources(nil, []string{"/proxy"}))
	if len(st.Resources) != 3 {
		t.Error(st.Resources)
	}
	for _, r := range st.Resources {
		if u := r.(*desired.Unit); !IsUnit(u.Name) || u.Activation != desired.Started || u.Enablement != desired.Enabled || !slices.Equal(u.Triggers, []string{"/proxy"}) {
			t.Errorf("%+v", u)
		}
	}
	if IsUnit("containerd.service") {
		t.Error("containerd is none of them")
	}
}
