package aks

import (
	"cmp"
	"slices"
	"strings"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/component/localdns"
	"github.com/berth-dev/berth/internal/component/packetfilter"
)

// localDNS is the node's own name server. It answers before kubelet starts a pod.
func (t *translation) localDNS() error {
	if !localDNS(t) {
		return nil
	}
	p := t.cfg.GetLocalDnsProfile()
	t.node = append(t.node, t.add("local_dns_profile", localdns.Resources(localdns.Settings{
		Node: zones(p.GetVnetDnsOverrides()), Pods: zones(p.GetKubeDnsOverrides()),
		ClusterDNS: cmp.Or(t.cfg.GetClusterConfig().GetClusterNetworkConfig().GetCoreDnsServiceIp(), "10.0.0.10"),
		MilliCPU:   or(p.CpuLimitInMilliCores, 2000), MegaBytes: or(p.MemoryLimitInMb, 128),
		Hosts: p.GetEnableHostsPlugin(), Names: p.GetCriticalFqdns(), Refresh: p.GetHostsPluginRefreshIntervalInSeconds(),
		Berth: cmp.Or(t.facts.Program, packetfilter.Program), After: slices.Clone(t.node),
	})...)...)
	return nil
}

// exportsLocalDNS: the image has what gives the server's figures away.
func exportsLocalDNS(t *translation) bool {
	return t.joins() && localDNS(t) && slices.Contains(t.facts.ImageUnits, imageunits.LocalDNSExporter)
}

func zones(of map[string]*aksnodeconfigv1.LocalDnsOverrides) map[string]localdns.Zone {
	out := map[string]localdns.Zone{}
	for name, o := range of {
		out[name] = zone(o)
	}
	return out
}

var forwardPolicies = map[string]string{"RoundRobin": "round_robin", "Random": "random"}

func zone(o *aksnodeconfigv1.LocalDnsOverrides) localdns.Zone {
	h := o.GetHealthCheck()
	return localdns.Zone{
		Log: o.GetQueryLogging(), TCP: o.GetProtocol() == "ForceTCP", Cluster: o.GetForwardDestination() == "ClusterCoreDNS",
		Policy: cmp.Or(forwardPolicies[o.GetForwardPolicy()], "sequential"), MaxConcurrent: o.GetMaxConcurrent(),
		Seconds: o.GetCacheDurationInSeconds(), Stale: o.GetServeStaleDurationInSeconds(), StaleMode: o.GetServeStale(),
		FailFast: o.GetFailfastAllUnhealthyUpstreams(),
		Health:   localdns.Health{Duration: h.GetDuration(), Domain: h.GetDomain(), NoRecursion: h.GetNoRec()},
	}
}

// asksCluster says whether a zone is forwarded to the cluster's name servers.
func asksCluster(t *translation) bool {
	p := t.cfg.GetLocalDnsProfile()
	asks := func(of map[string]*aksnodeconfigv1.LocalDnsOverrides, network bool) bool {
		for name, o := range of {
			if o.GetForwardDestination() == "ClusterCoreDNS" && (!network || name != ".") || strings.HasSuffix(name, "cluster.local") {
				return true
			}
		}
		return false
	}
	return localDNS(t) && (asks(p.GetVnetDnsOverrides(), true) || asks(p.GetKubeDnsOverrides(), false))
}
