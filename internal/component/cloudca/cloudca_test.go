package cloudca

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func certificate(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

// TestAnchors: another order changes nothing, and what stands twice is trusted once.
func TestAnchors(t *testing.T) {
	a, b := certificate("a"), certificate("b")
	one, err := Anchors([]string{a, b})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Anchors([]string{b + a, a})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, other); diff != "" || len(one) != 2 {
		t.Error(diff)
	}
	for _, r := range golden.State(t, one).Resources {
		if !strings.HasPrefix(string(r.ID()), string(desired.TrustAnchorID(Prefix))) {
			t.Error(r.ID())
		}
	}
	if _, err := Anchors([]string{"no certificate"}); err == nil {
		t.Error("what is no certificate is trusted")
	}
	if none, err := Anchors(nil); err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

func TestTimers(t *testing.T) {
	st := golden.State(t, Timers("/usr/bin/berth"))
	service := string(golden.File(t, st, unitDir+Unit).Content.Data())
	if !strings.Contains(service, "\nExecStart=/usr/bin/berth node cloud-ca\n") || !strings.Contains(service, "\nRestart=on-failure\n") {
		t.Error(service)
	}
	timer := string(golden.File(t, st, unitDir+Timer).Content.Data())
	for _, line := range []string{"OnCalendar=19:00", "RandomizedDelaySec=300", "Persistent=true"} {
		if !strings.Contains(timer, "\n"+line+"\n") {
			t.Errorf("no %s in\n%s", line, timer)
		}
	}
	if u, ok := st.Lookup(desired.UnitID(Timer)).(*desired.Unit); !ok || u.Enablement != desired.Enabled || u.Activation != desired.Started {
		t.Errorf("%+v", u)
	}
}

func TestIsLegacy(t *testing.T) {
	for location, want := range map[string]bool{
		"ussecwest": true, "USNat East": true, "usseceast": true, "usgovvirginia": false, "westeurope": false, "": false, "us secwest": true,
	} {
		if IsLegacy(location) != want {
			t.Errorf("%q: %v", location, !want)
		}
	}
}
