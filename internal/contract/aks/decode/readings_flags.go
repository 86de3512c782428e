package decode

import (
	"net"
	"strings"
)

// flagReading reads the value of a flag as kubelet does.
func flagReading(name, value string) (string, string) {
	if r := flagRules[name].read; r != nil {
		return r(value)
	}
	return value, ""
}

// nodeAddresses: kubelet passes over what is no address.
func nodeAddresses(s string) (string, string) {
	var out []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); sloppyIP(item) == "" {
			out = append(out, item)
		}
	}
	if t := strings.Join(out, ","); t != strings.ReplaceAll(s, " ", "") {
		return t, "kubelet passes over what is no IP address"
	}
	return s, ""
}

// addressPair is one address, or one of each family.
func addressPair(s string) string {
	const want = "expected one IP address, or an IPv4 and an IPv6 address"
	var seen [2]bool
	items := strings.Split(s, ",")
	for _, item := range items {
		ip := net.ParseIP(withoutZeros(strings.TrimSpace(item)))
		if ip == nil || len(items) > 1 && ip.IsUnspecified() {
			return want
		}
		family := 0
		if ip.To4() == nil {
			family = 1
		}
		if seen[family] {
			return want
		}
		seen[family] = true
	}
	return ""
}
