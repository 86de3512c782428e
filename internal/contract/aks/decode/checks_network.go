package decode

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// isAddress: an interface behind a % is the name of one on some other machine.
func isAddress(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Zone() == ""
}

// sloppyIP takes the addresses that Kubernetes takes from a user: zeros before a number do not count
// (k8s.io/utils/net.ParseIPSloppy).
func sloppyIP(s string) string {
	return unless(net.ParseIP(withoutZeros(s)) != nil, "expected an IP address")
}

var zeros = lazyregexp.New(`(^|[.:])0+([0-9])`)

func withoutZeros(s string) string {
	if strings.Contains(s, ":") && !strings.Contains(s, ".") {
		return s
	}
	for zeros().MatchString(s) {
		s = zeros().ReplaceAllString(s, "$1$2")
	}
	return s
}

func isDNSName(s string) bool {
	return len(content.IsDNS1123Subdomain(strings.ToLower(strings.TrimSuffix(s, ".")))) == 0
}

// host is the API server: what a client puts between https:// and :443. Resolvers take an underscore, too.
func host(s string) string {
	return unless(isAddress(s) || isDNSName(strings.ReplaceAll(s, "_", "x")), "expected a DNS name or an IP address, without scheme, port and path")
}

func isWeb(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && validPort(u)
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.Atoi(u.Port())
	return err == nil && n > 0 && n <= 65535
}

// proxyURL: a proxy may be named without scheme, as curl and Go read it.
func proxyURL(s string) string {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	known := err == nil && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
	return unless(known && u.Hostname() != "" && validPort(u), "expected the URL of a proxy, e.g. http://proxy.example:3128")
}

// dnsSuffix is what names of hosts end with; a dot before it does not count.
func dnsSuffix(s string) string {
	return unless(isDNSName(strings.Trim(s, ".")), "expected a DNS suffix, e.g. azurecr.example")
}

// unprivileged is net.ipv4.ip_unprivileged_port_start, which the contract has no field for.
const unprivileged = 1024

// portRange is net.ipv4.ip_local_port_range: two ports, the first not above the last. Ports that only root may
// listen at the kernel gives to nobody.
func portRange(s string) string {
	const want = `expected two ports, e.g. "32768 60999", the first not above the second`
	ports := strings.Fields(s)
	if len(ports) != 2 {
		return want
	}
	first, err1 := strconv.ParseUint(ports[0], 10, 16)
	last, err2 := strconv.ParseUint(ports[1], 10, 16)
	if err1 != nil || err2 != nil || first > last {
		return want
	}
	return unless(first >= unprivileged, "expected 1024 or more as the first port: the kernel takes none below net.ipv4.ip_unprivileged_port_start")
}
