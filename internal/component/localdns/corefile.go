package localdns

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// AzureDNS is the name server of a virtual network that names no other. In the
// Corefile it stands for those that the machine has when the server starts.
const AzureDNS = "168.63.129.16"

// Zone is what the server does with the names of one zone.
type Zone struct {
	// Log is Error or Log; anything else logs nothing.
	Log string
	// TCP forwards by TCP alone. Cluster forwards to the cluster's name servers, not to
	// those of the network.
	TCP, Cluster bool
	// Policy is round_robin, random or sequential.
	Policy string
	// MaxConcurrent bounds the queries under way; 0: no bound.
	MaxConcurrent int32
	// Seconds an answer is kept: 0 is the server's own default. Stale are the seconds
	// that it is served beyond its end, by StaleMode: Verify, Immediate, or not at all.
	Seconds, Stale int32
	StaleMode      string
	FailFast       bool
	Health         Health
}

// Health is how often the servers that are forwarded to are asked whether they are
// there; without a duration as the server likes.
type Health struct {
	Duration, Domain string
	NoRecursion      bool
}

// listener is one of the two addresses that are answered at.
type listener struct {
	address netip.Addr
	id      string
	zones   map[string]Zone
	// network: names of the root zone go to the network's servers, whatever is said.
	network bool
}

func (s Settings) listeners() []listener {
	return []listener{
		{address: NodeAddress, id: "localdns", zones: s.Node, network: true},
		{address: PodAddress, id: "localdns-pod", zones: s.Pods},
	}
}

// text is the server's configuration, as published.
func (s Settings) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by berth.\n%s:53 {\n    bind %s %s\n    whoami\n}\n", HealthName, NodeAddress, PodAddress)
	for _, l := range s.listeners() {
		for _, name := range slices.Sorted(maps.Keys(l.zones)) {
			b.WriteString(s.zone(l, name, l.zones[name]))
		}
	}
	return b.String()
}

func (s Settings) zone(l listener, name string, z Zone) string {
	root := name == "."
	lines := append([]string{}, z.log()...)
	lines = append(lines, "bind "+l.address.String())
	if root && s.Hosts {
		lines = append(lines, "hosts "+HostsFile+" {", "    ttl 5", "    reload 5s", "    fallthrough", "}")
	}
	lines = append(lines, z.forward(s.upstream(l, name, z))...)
	lines = append(lines, fmt.Sprintf("ready %s:%d", l.address, ReadyPort))
	lines = append(lines, z.cache()...)
	lines = append(lines, "loop", "nsid "+l.id, "prometheus :9253")
	if root {
		lines = append(lines, azureNames...)
	}
	return name + ":53 {\n    " + strings.Join(lines, "\n    ") + "\n}\n"
}

// azureNames are search domains of Azure's networks, under which nobody means a name.
var azureNames = []string{
	"template ANY ANY internal.cloudapp.net {", `    match "^(?:[^.]+\.){4,}internal\.cloudapp\.net\.$"`, "    rcode NXDOMAIN", "    fallthrough", "}",
	"template ANY ANY reddog.microsoft.com {", "    rcode NXDOMAIN", "}",
}

// upstream: the names of the cluster are the cluster's.
func (s Settings) upstream(l listener, name string, z Zone) string {
	if l.network && name == "." {
		return AzureDNS
	}
	if z.Cluster || strings.HasSuffix(name, "cluster.local") {
		return s.ClusterDNS
	}
	return AzureDNS
}

func (z Zone) log() []string {
	switch z.Log {
	case "Error":
		return []string{"errors"}
	case "Log":
		return []string{"log"}
	}
	return nil
}

func (z Zone) forward(to string) []string {
	lines := []string{"forward . " + to + " {"}
	if z.TCP {
		lines = append(lines, "    force_tcp")
	}
	lines = append(lines, "    policy "+z.Policy, fmt.Sprintf("    max_concurrent %d", max(z.MaxConcurrent, 0)))
	if z.Health.Duration != "" {
		lines = append(lines, "    "+z.Health.line())
	}
	if z.FailFast {
		lines = append(lines, "    failfast_all_unhealthy_upstreams")
	}
	return append(lines, "}")
}

func (h Health) line() string {
	line := "health_check " + h.Duration
	if h.NoRecursion {
		line += " no_rec"
	}
	if h.Domain != "" {
		line += " domain " + h.Domain
	}
	return line
}

// cache: a time of 0 the server refuses.
func (z Zone) cache() []string {
	first := "cache {"
	if z.Seconds > 0 {
		first = fmt.Sprintf("cache %d {", z.Seconds)
	}
	lines := []string{first, "    success 9984", "    denial 9984"}
	if mode := map[string]string{"Verify": "verify", "Immediate": "immediate"}[z.StaleMode]; mode != "" && z.Stale > 0 {
		lines = append(lines, fmt.Sprintf("    serve_stale %ds %s", z.Stale, mode))
	}
	return append(lines, "    servfail 0", "}")
}

// WithUpstream puts the machine's name servers where the text says AzureDNS.
func WithUpstream(text string, servers []netip.Addr) string {
	var names []string
	for _, a := range servers {
		names = append(names, a.String())
	}
	return strings.ReplaceAll(text, "forward . "+AzureDNS+" {", "forward . "+strings.Join(names, " ")+" {")
}

// ReadyURLs are where the server tells that it is ready to answer.
func ReadyURLs(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "ready "); ok && !slices.Contains(out, "http://"+at+"/ready") {
			out = append(out, "http://"+at+"/ready")
		}
	}
	return out
}
