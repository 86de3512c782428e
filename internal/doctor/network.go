package doctor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/podnet"
	"github.com/berth-dev/berth/internal/kubeletconfig"
)

// hostPort is where a URL leads, in one spelling.
func hostPort(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	p := u.Port()
	if p == "" {
		p = map[string]string{"http": "80"}[u.Scheme]
	}
	if p == "" {
		p = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), p)
}

const lookupBudget = 5 * time.Second

func checkDNS(ctx context.Context, v *visit) *finding {
	f := &finding{}
	ctx, cancel := context.WithTimeout(ctx, lookupBudget)
	defer cancel()
	server, err := v.server()
	if err != nil {
		f.unknown("", "the API server's name is not known: %v", err)
	} else {
		v.lookup(ctx, f, hostName(server), Error)
	}
	for _, name := range v.downloadHosts() {
		v.lookup(ctx, f, name, Warning)
	}
	v.nameServers(f)
	return f.ok("no name has to be looked up")
}

func hostName(server string) string {
	name, _, _ := net.SplitHostPort(hostPort(server))
	return name
}

func (v *visit) lookup(ctx context.Context, f *finding, name string, worst Status) {
	if _, err := netip.ParseAddr(name); err == nil {
		return
	}
	_, err := v.resolver.LookupHost(ctx, name)
	dns, _ := errors.AsType[*net.DNSError](err)
	remedy := "see that the name has a record which this machine's name servers know: /etc/resolv.conf"
	switch {
	case err == nil:
		f.ok("%s has an address", name)
	case dns != nil && dns.IsNotFound:
		f.add(worst, remedy, "%s has no address", name)
	default:
		f.add(worst, remedy, "%s can't be looked up: %v", name, err)
	}
}

// downloadHosts are the servers of what is to be fetched, where no proxy asks for their
// addresses.
func (v *visit) downloadHosts() []string {
	st, err := v.state()
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range find[*desired.Artifact](st) {
		if a.Via != nil && (a.Via.HTTPProxy != "" || a.Via.HTTPSProxy != "") || v.inPlace(context.Background(), a) {
			continue
		}
		for _, raw := range a.Addresses() {
			if u, err := url.Parse(raw); err == nil && u.Hostname() != "" {
				out = append(out, strings.ToLower(u.Hostname()))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nameServers looks at the list that pods inherit: a name server on the loopback is
// another one in each pod.
func (v *visit) nameServers(f *finding) {
	config, err := v.kubeletConfig()
	if err != nil {
		f.unread("which list of name servers pods inherit", err)
		return
	}
	list, _ := config["resolvConf"].(string)
	if list == "" {
		list = "/etc/resolv.conf"
	}
	text, err := kubeletconfig.Follow(v.Host, list)
	if err != nil {
		f.unread(list, err)
		return
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil && a.IsLoopback() {
			f.warn("name a list without it as resolvConf in kubelet's configuration", "%s names %s: pods that use the machine's name servers would ask themselves", list, a)
		}
	}
}

func checkRoutes(ctx context.Context, v *visit) *finding {
	routes, err := v.Survey.Routes()
	if err != nil {
		return unread("the routes", err)
	}
	server, err := v.server()
	if err != nil {
		return unknownf("", "the API server is not known: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupBudget)
	defer cancel()
	all, err := v.resolver.LookupNetIP(ctx, "ip", hostName(server))
	if err != nil {
		return unknownf("", "the API server's address is not known: %v", err)
	}
	for _, a := range all {
		a = a.Unmap()
		if a.IsLoopback() {
			return okf("the API server is on this machine")
		}
		for _, r := range routes {
			if r.To.Contains(a) {
				return okf("%s is reached by %s", a, r.Interface)
			}
		}
	}
	return failf("add a default route, or one to the cluster's network", "no route leads to the API server, %s", all[0].Unmap())
}

// checkAddresses: a pod, a service and a server of the site that have one address can't
// all be reached.
func checkAddresses(_ context.Context, v *visit) *finding {
	st, err := v.state()
	if err != nil {
		return unknownf("", "what the document means is not known: %v", err)
	}
	own, err := v.networks()
	if err != nil {
		return unread("the machine's addresses and routes", err)
	}
	config, err := v.kubeletConfig()
	if err != nil {
		return unread("kubelet's configuration", err)
	}
	pods, servers := v.podNetworks(st, config), clusterDNS(config)
	if len(pods)+len(servers) == 0 {
		return unknownf("compare the cluster's networks with those of the machine", "the document names no network of pods or services: the cluster alone knows them")
	}
	f := &finding{}
	for _, p := range pods {
		overlaps(f, "pods are to have", p, own, "networking.podCIDRs")
	}
	for _, a := range servers {
		overlaps(f, "services have", netip.PrefixFrom(a, a.BitLen()), own, "networking.clusterDNS")
	}
	return f.ok("they are apart")
}

// overlaps finds what keeps a network of the cluster's from being one of its own: an error
// where a network that the machine is in overlaps, a warning where a route leads there.
func overlaps(f *finding, what string, p netip.Prefix, own []network, field string) {
	for _, n := range own {
		if !n.prefix.Overlaps(p) {
			continue
		}
		status := Warning
		if n.direct {
			status = Error
		}
		f.add(status, "choose other networks for pods and services, or another one for the site", "%s %s, and the machine reaches %s by %s", what, p, n.prefix, n.by).at(field)
		return
	}
}

type network struct {
	prefix netip.Prefix
	by     string
	// direct: the machine has an address in it.
	direct bool
}

// widest is the length of the shortest route that is for a network: those that are shorter
// lead to everything else, as the halves do by which a VPN is the way out.
const widest = 8

// networks are those that the machine is in, and then those to which routes lead, but not
// those of bridges of pods.
func (v *visit) networks() ([]network, error) {
	addresses, err := v.Survey.Addresses()
	if err != nil {
		return nil, err
	}
	routes, err := v.Survey.Routes()
	if err != nil {
		return nil, err
	}
	var out []network
	add := func(p netip.Prefix, by string, direct bool) {
		if p.Bits() > 0 && !p.Addr().IsLinkLocalUnicast() && !p.Addr().IsMulticast() && !podnet.IsBridge(by) {
			out = append(out, network{p.Masked(), by, direct})
		}
	}
	for _, a := range addresses {
		add(a.Prefix, a.Interface, true)
	}
	for _, r := range routes {
		if r.To.Bits() >= widest {
			add(r.To, r.Interface, false)
		}
	}
	return out, nil
}

// podNetworks are those that the document gives to this machine's pods.
func (v *visit) podNetworks(st *desired.State, config map[string]any) []netip.Prefix {
	var texts []string
	if v.Config != nil {
		texts = v.Config.Networking.PodCIDRs
	}
	if one, ok := config["podCIDR"].(string); ok && one != "" {
		texts = append(texts, strings.Split(one, ",")...)
	}
	var out []netip.Prefix
	for _, t := range texts {
		if p, err := netip.ParsePrefix(t); err == nil {
			out = append(out, p.Masked())
		}
	}
	if there := slices.ContainsFunc(find[*desired.File](st), func(f *desired.File) bool { return f.Path == cni.BridgeFile }); !there && v.Config == nil {
		return nil // the file alone decides; a cluster's own network ignores the field
	}
	return out
}

func clusterDNS(config map[string]any) []netip.Addr {
	list, _ := config["clusterDNS"].([]any)
	var out []netip.Addr
	for _, one := range list {
		text, _ := one.(string)
		if a, err := netip.ParseAddr(text); err == nil && !a.IsLinkLocalUnicast() {
			out = append(out, a)
		}
	}
	return out
}

const dialBudget = 4 * time.Second

func checkProxy(ctx context.Context, v *visit) *finding {
	st, err := v.state()
	if err != nil {
		return unknownf("", "what the document means is not known: %v", err)
	}
	var all []string
	for _, a := range find[*desired.Artifact](st) {
		if a.Via != nil {
			all = append(all, a.Via.HTTPProxy.Reveal(), a.Via.HTTPSProxy.Reveal())
		}
	}
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
	f := &finding{}
	for _, raw := range all {
		dialProxy(ctx, f, hostPort(raw))
	}
	if own := v.ownProxy(); len(all) == 0 && own != "" {
		f.warn("put it into the document's proxy section", "%s is set here, and the document has no proxy: berth's downloads would use it, kubelet and containerd would not", own)
	}
	return f.ok("the document has none")
}

func dialProxy(ctx context.Context, f *finding, at string) {
	ctx, cancel := context.WithTimeout(ctx, dialBudget)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
	if err != nil {
		f.fail("check the proxy's address, and the way to it", "the proxy at %s does not answer: %v", at, err).at("proxy")
		return
	}
	_ = c.Close()
	f.ok("the proxy at %s takes connections", at)
}

// ownProxy is the variable that makes the program use a proxy.
func (v *visit) ownProxy() string {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
		if v.Env(name) != "" {
			return name
		}
	}
	return ""
}
