package join

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

const (
	localnet    = "net.ipv4.conf.all.route_localnet"
	established = "net.netfilter.nf_conntrack_tcp_timeout_established"
)

// TestProxyValues: each parameter that is noted has what kube-proxy makes of it.
func TestProxyValues(t *testing.T) {
	if diff := cmp.Diff(ledger.SetByProxy, slices.Sorted(maps.Keys(proxyValues))); diff != "" {
		t.Error(diff)
	}
}

// TestLeaveGivesProxyValuesBack: what kube-proxy set is as it was, and as the kernel begins
// where its module came since; a value of somebody else stays and is named.
func TestLeaveGivesProxyValuesBack(t *testing.T) {
	for name, c := range map[string]struct {
		before, since, want map[string]string
		stays               string
		more                []desired.Resource
	}{
		"as kube-proxy sets it": {
			map[string]string{localnet: "0", established: "7200"},
			map[string]string{localnet: "1", established: "86400"},
			map[string]string{localnet: "0", established: "7200"}, "", nil,
		},
		"no kube-proxy":    {map[string]string{localnet: "1", established: "600"}, nil, map[string]string{localnet: "1", established: "600"}, "", nil},
		"as it was before": {map[string]string{localnet: "1"}, map[string]string{localnet: "1"}, map[string]string{localnet: "1"}, "", nil},
		"the module came since": {
			nil, map[string]string{localnet: "0", established: "86400"},
			map[string]string{localnet: "0", established: "432000"}, "", nil,
		},
		"somebody's": {
			map[string]string{established: "7200"}, map[string]string{established: "600"}, map[string]string{established: "600"},
			established + " is 600, and was 7200 before berth", nil,
		},
		"the document's": {
			map[string]string{established: "7200"}, nil, map[string]string{established: "7200"}, "",
			[]desired.Resource{&desired.Sysctl{Key: established, Value: "600"}},
		},
		"a document that came after kube-proxy": {
			map[string]string{established: "7200"}, nil, map[string]string{established: "7200"}, "",
			[]desired.Resource{&desired.Sysctl{Key: established, Value: "600"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.m.PutDir("/proc/sys/net")
			put := func(values map[string]string) {
				for key, value := range values {
					w.m.Value(procFile(key), value+"\n")
				}
			}
			put(c.before)
			if name == "a document that came after kube-proxy" {
				w.join(desired.OwnerAKS)
				put(map[string]string{established: "86400"})
			}
			w.join(desired.OwnerAKS, c.more...)
			put(c.since)
			out, err := w.leave(forced)
			if err != nil || strings.Join(out.Stayed, "\n") != c.stays {
				t.Errorf("%q, %v", out.Stayed, err)
			}
			for key, want := range c.want {
				if have, err := w.m.ReadFile(procFile(key)); strings.TrimSpace(string(have)) != want || err != nil {
					t.Errorf("%s is %q, want %q; %v", key, have, want, err)
				}
			}
		})
	}
}

func procFile(key string) string { return "/proc/sys/" + strings.ReplaceAll(key, ".", "/") }
