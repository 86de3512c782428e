package kernel

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	for name, s := range map[string]Settings{
		"defaults.json":  {IPv6: true},
		"protected.json": {Kubelet: true},
		"values.json": {Values: map[string]string{
			"net.core.somaxconn": "1024", "net.netfilter.nf_conntrack_max": "524288", "vm.swappiness": "10",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.MarshalIndent(golden.State(t, Resources(s)), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, string(b)+"\n")
		})
	}
}

// What is live now is what the files set at the next boot.
func TestLiveEqualsFiles(t *testing.T) {
	st := golden.State(t, Resources(Settings{IPv6: true, Values: map[string]string{"vm.swappiness": "0"}}))
	text := string(golden.File(t, st, ForwardFile).Content.Data()) + string(golden.File(t, st, SysctlFile).Content.Data())
	for _, r := range st.Resources {
		if s, ok := r.(*desired.Sysctl); ok && !slices.Contains(strings.Split(text, "\n"), s.Key+" = "+s.Value) {
			t.Errorf("%s = %s is in no file", s.Key, s.Value)
		}
	}
}

func TestOnlyWhatNobodyAskedForIsOptional(t *testing.T) {
	st := golden.State(t, Resources(Settings{Values: map[string]string{"net.core.somaxconn": "1"}}))
	for key, want := range map[string]bool{
		"net.core.somaxconn": false, "net.core.message_cost": true, "net.ipv4.ip_forward": false,
	} {
		if got := st.Lookup(desired.SysctlID(key)).(*desired.Sysctl).Optional; got != want {
			t.Errorf("%s: optional %v, want %v", key, got, want)
		}
	}
}
