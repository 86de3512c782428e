package decode

import (
	"net/netip"
	"strings"
	"time"
)

// dnsZone is what stands in a Corefile as it is: one word, nothing of which the file's
// own syntax means anything. Labels may hold any other sign.
func dnsZone(s string) string {
	const want = "expected the name of a DNS zone, or a dot for all names"
	if s == "" || len(s) > 254 || strings.ContainsAny(s, " \t\r\n\"{}#$`\\:/,") {
		return want
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if s != "." && label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return want
		}
	}
	return ""
}

func healthDuration(s string) string {
	d, err := time.ParseDuration(s)
	return unless(err == nil && d > 0, `expected a duration above 0, e.g. "1s"`)
}

// forwardTo: the published default is an address, and a port would be another server.
func forwardTo(s string) string {
	a, err := netip.ParseAddr(s)
	return unless(err == nil && a.Zone() == "", "expected an IP address")
}
