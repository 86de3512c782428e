package join

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind/sysctl"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// proxyValue is what kube-proxy makes of a kernel parameter where nobody configures it
// otherwise, and what the kernel starts with, "" where that depends on the machine.
//
// Source: cmd/kube-proxy, pkg/proxy/conntrack/sysctls.go and the proxiers of Kubernetes
// 1.36, and net/netfilter/nf_conntrack_proto_tcp.c.
type proxyValue struct {
	sets  func(string) bool
	fresh string
}

var proxyValues = map[string]proxyValue{
	"net.ipv4.conf.all.route_localnet":                   {is("1"), "0"},
	"net.ipv4.conf.all.arp_ignore":                       {is("1"), "0"},
	"net.ipv4.conf.all.arp_announce":                     {is("2"), "0"},
	"net.netfilter.nf_conntrack_max":                     {isProxyMax, ""},
	"net.netfilter.nf_conntrack_tcp_be_liberal":          {is("1"), "0"},
	"net.netfilter.nf_conntrack_tcp_timeout_close_wait":  {is("3600"), "60"},
	"net.netfilter.nf_conntrack_tcp_timeout_established": {is("86400"), "432000"},
}

func is(want string) func(string) bool { return func(have string) bool { return have == want } }

// isProxyMax: 32,768 entries for each processor, at least 131,072, at most 1,048,576.
func isProxyMax(have string) bool {
	n, err := strconv.Atoi(have)
	return err == nil && n >= 131_072 && n <= 1_048_576 && n%32_768 == 0
}

// restoreProxyValues gives kernel parameters that kube-proxy has set the values from before
// berth. One of another value is somebody's choice, and is named; so is nothing where nobody
// knows what there was.
func (l *leave) restoreProxyValues(context.Context) {
	found, known := l.led.Found[ledger.ValuesFound]
	if !known || found.Unknown {
		return
	}
	before := map[string]string{}
	for _, line := range found.Names {
		key, value, _ := strings.Cut(line, "=")
		before[key] = value
	}
	for _, key := range ledger.SetByProxy {
		if _, ours := l.led.Entries[string((&desired.Sysctl{Key: key}).ID())]; ours {
			continue // the document's end gives it back
		}
		have, err := sysctl.Value(l.Host, key)
		if err != nil || have == "" {
			l.failed("read "+key, err)
			continue
		}
		l.restoreProxyValue(key, have, before)
	}
}

func (l *leave) restoreProxyValue(key, have string, before map[string]string) {
	was, stood := before[key]
	if !stood {
		was = proxyValues[key].fresh // the module came since
	}
	switch {
	case was == have || was == "":
	case proxyValues[key].sets(have):
		err := sysctl.Set(l.Host, key, was)
		if err == nil {
			l.Say(fmt.Sprintf("set %s back to %s, which kube-proxy had made %s", key, was, have))
		}
		l.failed("set "+key+" back to "+was, err)
	case stood:
		l.stay(fmt.Sprintf("%s is %s, and was %s before berth", key, have, was))
	}
}
