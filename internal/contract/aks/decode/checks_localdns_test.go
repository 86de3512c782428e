package decode

import "testing"

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
