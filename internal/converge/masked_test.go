package converge_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
)

// A unit of somebody else that needs one which is not to run stays down with it, and the
// run says so; what only belongs to it comes back.
func TestNeedsAMaskedUnit(t *testing.T) {
	h := newMachine()
	for name, unit := range map[string]string{"base": "", "user": "[Unit]\nRequires=base.service\nAfter=base.service\n", "friend": "[Unit]\nPartOf=base.service\n"} {
		h.Put("/usr/lib/systemd/system/"+name+".service", unit+"[Service]\nExecStart=/usr/bin/containerd\n", 0o644)
	}
	if err := errors.Join(h.DaemonReload(t.Context()), h.StartUnit(t.Context(), "user.service"), h.StartUnit(t.Context(), "friend.service")); err != nil {
		t.Fatal(err)
	}
	mask := &desired.Link{Path: "/etc/systemd/system/base.service", Target: "/dev/null"}
	masked := sealed(t, mask, &desired.Unit{Base: desired.Base{After: []desired.ID{mask.ID()}}, Name: "base.service", Activation: desired.Stopped})
	res, err := fetching(h).Apply(t.Context(), masked)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(res.Plan.Remarks, func(r string) bool { return strings.Contains(r, "user.service stays stopped: it needs base.service") }) {
		t.Errorf("remarks: %q", res.Plan.Remarks)
	}
	for name, want := range map[string]string{"base.service": "inactive", "user.service": "inactive", "friend.service": "active"} {
		if st, err := h.Unit(t.Context(), name); err != nil || st.ActiveState != want {
			t.Errorf("%s is %s, %v", name, st.ActiveState, err)
		}
	}
	converged(t, h, masked)
}
