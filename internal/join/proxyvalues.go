package join

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/converge/kind/sysctl"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// proxyValue is what kube-proxy makes of a kernel parameter where nobody configures it
// otherwise, and what the kernel starts with.
//
// Source: cmd/kube-proxy, pkg/proxy/conntrack/sysctls.go and the proxiers of Kubernetes
// 1.36, and net/netfilter/nf_conntrack_proto_tcp.c.
type proxyValue struct{ sets, fresh string }

var proxyValues = map[string]proxyValue{
	"net.ipv4.conf.all.route_localnet":                   {"1", "0"},
	"net.ipv4.conf.all.arp_ignore":                       {"1", "0"},
	"net.ipv4.conf.all.arp_announce":                     {"2", "0"},
	"net.netfilter.nf_conntrack_tcp_be_liberal":          {"1", "0"},
	"net.netfilter.nf_conntrack_tcp_timeout_close_wait":  {"3600", "60"},
	"net.netfilter.nf_conntrack_tcp_timeout_established": {"86400", "432000"},
}

// restoreProxyValues gives kernel parameters that kube-proxy has set the values from before
// berth, when the documents are withdrawn: one of theirs may have taken kube-proxy's for
// what was there before. A value that was noted and is another one now, but not
// kube-proxy's, is somebody's choice, and is named. Where nobody noted any, nothing is done.
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
		if e := l.led.Entries[string((&desired.Sysctl{Key: key}).ID())]; slices.ContainsFunc(l.others, e.Owns) {
			continue
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
	case was == have:
	case have == proxyValues[key].sets:
		err := sysctl.Set(l.Host, key, was)
		if err == nil {
			l.Say(fmt.Sprintf("set %s back to %s, which kube-proxy had made %s", key, was, have))
		}
		l.failed("set "+key+" back to "+was, err)
	case stood:
		l.stay(fmt.Sprintf("%s is %s, and was %s before berth", key, have, was))
	}
}
