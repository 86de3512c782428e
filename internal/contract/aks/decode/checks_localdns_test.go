package decode

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/localdns"
)

func TestDNSZone(t *testing.T) {
	for _, right := range []string{".", "cluster.local", "cluster.local.", "*.example.com", "_tcp.x", "a-b"} {
		if said := dnsZone(right); said != "" {
			t.Errorf("%q: %s", right, said)
		}
	}
	for _, wrong := range []string{"", "..", "a..b", "x y", "x {", "a:53", "dns://a", "$A", "{$A}", "a\nb", "10.0.0.0/8", "a#b", "\u00e4.example", "a,b"} {
		if dnsZone(wrong) == "" {
			t.Errorf("%q is taken for a zone", wrong)
		}
	}
}

func TestHealthDuration(t *testing.T) {
	for text, right := range map[string]bool{"1s": true, "500ms": true, "0s": false, "-1s": false, "1": false, "": false, "1s\nerrors": false} {
		if (healthDuration(text) == "") != right {
			t.Errorf("%q", text)
		}
	}
}

func TestForwardTo(t *testing.T) {
	for text, right := range map[string]bool{"10.0.0.10": true, "fd00::a": true, "10.0.0.10:53": false, "fe80::1%eth0": false, "dns.example": false} {
		if (forwardTo(text) == "") != right {
			t.Errorf("%q", text)
		}
	}
}

// The name server starts only where each of its addresses has a zone once.
func TestZonesOnce(t *testing.T) {
	const vnet, kube, own = "local_dns_profile.vnet_dns_overrides", "local_dns_profile.kube_dns_overrides", localdns.HealthName
	zones := func(names ...string) map[string]any {
		out := map[string]any{}
		for _, name := range names {
			out[name] = map[string]any{}
		}
		return out
	}
	for name, c := range map[string]struct {
		edits edits
		want  []string
	}{
		"one zone at two addresses": {edits{vnet: zones(".", "corp.example"), kube: zones(".", "corp.example.")}, nil},
		"another case":              {edits{vnet: zones("corp.example", "Corp.example")}, nil},
		"a dot at the end":          {edits{vnet: zones("corp.example", "corp.example."), kube: zones("a.b.", "a.b")}, []string{kube + "[a.b.]", vnet + "[corp.example.]"}},
		"the server's own":          {edits{vnet: zones(own + "."), kube: zones(own)}, []string{kube + "[" + own + "]", vnet + "[" + own + ".]"}},
	} {
		for _, on := range []bool{false, true} {
			c.edits["local_dns_profile.enable_local_dns"] = on
			var got, want []string
			if on {
				want = c.want
			}
			_, err := Decode(c.edits.document(t))
			if refused, ok := errors.AsType[*DocumentError](err); ok {
				for _, f := range refused.List() {
					got = append(got, f.Field)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, on %t: %s", name, on, diff)
			}
		}
	}
}
