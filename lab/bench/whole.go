package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/build"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// wholeBound is what a whole document may cost of berth's own time beside the least.
const wholeBound = 100 * time.Millisecond

// Whole is what all that a document can ask for costs a run of berth, beside the least
// that makes a node. The image has every program.
type Whole struct{ Least, Most Document }

// Document is one of the two, with its runs.
type Document struct {
	name string
	text []byte
	Runs []Own
}

// Own is what berth took for itself in one run.
type Own struct {
	// Run is all of it. Clock is the part in which it waited for no unit, program, server
	// or image.
	Run, Clock time.Duration
	// CPU is what the process had of the processors, without the programs that it ran.
	CPU time.Duration
}

// wholes measures and prints.
func wholes(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	all, err := CompareWhole(ctx, l, o)
	all.Print(w)
	return err
}

// CompareWhole provisions fresh nodes by both in turn, o.Pairs times each.
func CompareWhole(ctx context.Context, l *lab.Lab, o Options) (all Whole, err error) {
	if all, err = documents(l); err != nil {
		return all, err
	}
	files, err := wholeFiles(ctx, l)
	if err != nil {
		return all, err
	}
	b := &bench{lab: l, log: o.Log}
	sides := []*Document{&all.Least, &all.Most}
	for i := range o.Pairs {
		for j := range sides {
			if err := b.own(ctx, sides[(i+j)%2], files); err != nil {
				return all, fmt.Errorf("round %d: %w", i+1, err)
			}
		}
		fmt.Fprintf(o.Log, "whole document, round %d: own CPU %.3f s, of the least %.3f s\n", i+1, all.Most.Runs[i].CPU.Seconds(), all.Least.Runs[i].CPU.Seconds())
	}
	return all, nil
}

// documents are the least of the lab's nodes, and the document with every field of the
// tree's own tests, as far as an image and a machine of the lab can hold it.
func documents(l *lab.Lab) (all Whole, err error) {
	least, err := l.NodeConfiguration()
	if err != nil {
		return all, err
	}
	root, err := build.Root()
	if err != nil {
		return all, err
	}
	text, err := os.ReadFile(filepath.Join(root, "internal/contract/aks/testdata/full.json"))
	if err != nil {
		return all, err
	}
	most, err := nodeconfigutils.Unmarshal(text)
	if err != nil {
		return all, err
	}
	hold(most, least, l.Gateway().String())
	all.Least.name, all.Most.name = "least", "whole"
	if all.Least.text, err = nodeconfigutils.Marshal(least); err != nil {
		return all, err
	}
	all.Most.text, err = nodeconfigutils.Marshal(most)
	return all, err
}

// hold takes out of a document what is of another cluster, of a network that the lab does
// not have, or of a kernel that is the host's.
func hold(c, least *aksnodeconfigv1.Configuration, server string) {
	c.KubernetesVersion, c.KubernetesCaCert, c.ApiServerConfig = least.KubernetesVersion, least.KubernetesCaCert, least.ApiServerConfig
	c.BootstrappingConfig.TlsBootstrappingToken = least.BootstrappingConfig.TlsBootstrappingToken
	c.KubeBinaryConfig = least.KubeBinaryConfig
	c.KubeletConfig.KubeletFlags = least.KubeletConfig.KubeletFlags
	c.KubeletConfig.ContainerDataDir = ""
	c.KubeletConfig.KubeletClientCertContent, c.KubeletConfig.KubeletClientKey = "", ""
	c.HttpProxyConfig.NoProxyEntries = append(c.HttpProxyConfig.NoProxyEntries, ".lab.test", server)
	c.NetworkConfig.NetworkPolicy = least.NetworkConfig.NetworkPolicy // nobody installs calico
	c.NetworkConfig.VnetCniPluginsUrl, c.NetworkConfig.CniPluginsUrl, c.NetworkConfig.StandardSecondaryNicCount = "", "", 0
	c.ContainerdConfig, c.RuncConfig, c.GpuConfig, c.CustomCloudConfig, c.CustomSearchDomainConfig = nil, nil, nil, nil, nil
	c.CustomLinuxOsConfig = ofMachine(c.CustomLinuxOsConfig)
	c.VmSize, c.KubeProxyUrl, c.OutboundCommand, c.PrivateEgressProxyAddress, c.BootstrapProfileContainerRegistryServer = "", "", "true", "", ""
	c.IsKata, c.EnableArtifactStreaming, c.ServiceAccountImagePullProfile = false, false, nil
	for _, zones := range []map[string]*aksnodeconfigv1.LocalDnsOverrides{c.LocalDnsProfile.VnetDnsOverrides, c.LocalDnsProfile.KubeDnsOverrides} {
		for _, z := range zones {
			z.HealthCheck = nil // of a name in another network
		}
	}
	c.LocalDnsProfile.CriticalFqdns = []string{lab.APIServerName}
}

// ofMachine is what a machine of the lab has for itself of the kernel: some of its network.
func ofMachine(c *aksnodeconfigv1.CustomLinuxOsConfig) *aksnodeconfigv1.CustomLinuxOsConfig {
	s := c.SysctlConfig
	return &aksnodeconfigv1.CustomLinuxOsConfig{UlimitConfig: c.UlimitConfig, SysctlConfig: &aksnodeconfigv1.SysctlConfig{
		NetCoreSomaxconn: s.NetCoreSomaxconn, NetIpv4TcpMaxSynBacklog: s.NetIpv4TcpMaxSynBacklog, NetIpv4TcpMaxTwBuckets: s.NetIpv4TcpMaxTwBuckets,
		NetIpv4TcpFinTimeout: s.NetIpv4TcpFinTimeout, NetIpv4TcpKeepaliveTime: s.NetIpv4TcpKeepaliveTime, NetIpv4TcpKeepaliveProbes: s.NetIpv4TcpKeepaliveProbes,
		NetIpv4TcpTwReuse: s.NetIpv4TcpTwReuse, NetIpv4IpLocalPortRange: s.NetIpv4IpLocalPortRange,
	}}
}

// wholeFiles are what the lab's image lacks of a published one.
func wholeFiles(ctx context.Context, l *lab.Lab) (map[string]lab.File, error) {
	path, err := l.CoreDNS(ctx)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return map[string]lab.File{"/opt/azure/containers/localdns/binary/coredns": {Content: program, Mode: 0o755}}, nil
}

// own provisions a fresh node.
func (b *bench) own(ctx context.Context, d *Document, files map[string]lab.File) error {
	c := lab.NodeConfig{Name: d.name, UserData: []byte("#cloud-config\n{}\n"), Files: files}
	return b.fresh(ctx, c, func(ctx context.Context, n *lab.Node) error {
		if err := n.WriteFile(configPath, d.text, 0o600); err != nil {
			return err
		}
		if err := quiesce(ctx, false); err != nil {
			return err
		}
		r, err := n.Exec(ctx, append([]string{"python3", "-c", processorTime}, provision()...)...)
		if err != nil {
			return err
		}
		if r.Code != 0 {
			return fmt.Errorf("provision: exit code %d\n%s", r.Code, r.Stderr)
		}
		text, err := n.Output(ctx, "berth", "timeline", "-o", "json")
		if err != nil {
			return err
		}
		run, err := parseOwn(string(r.Stdout), []byte(text))
		d.Runs = append(d.Runs, run)
		return err
	})
}

// processorTime runs a command, and prints what its process had of the processors, in
// seconds: proc(5) has it as long as nobody has asked how the process ended.
const processorTime = `import os, sys
p = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
os.waitid(os.P_PID, p, os.WEXITED | os.WNOWAIT)
had = open(f'/proc/{p}/stat').read().rpartition(')')[2].split()[11:13]
print(sum(map(int, had)) / os.sysconf('SC_CLK_TCK'))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))`

// others are the resources whose actions wait for another program or another machine.
var others = []string{"unit:", "check:", "credential:", "image:", "node:", "trust:"}

// parseOwn reads the processor time and the run's timeline.
func parseOwn(cpu string, text []byte) (o Own, err error) {
	seconds, err := strconv.ParseFloat(strings.TrimSpace(cpu), 64)
	if err != nil {
		return o, fmt.Errorf("processor time: %w", err)
	}
	var line struct {
		Start, End time.Time
		Spans      []struct {
			ID         string
			Start, End time.Time
		}
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return o, fmt.Errorf("timeline: %w", err)
	}
	o.Run, o.CPU = line.End.Sub(line.Start), time.Duration(seconds*float64(time.Second))
	var waits []window
	for _, s := range line.Spans {
		if slices.ContainsFunc(others, func(p string) bool { return strings.HasPrefix(s.ID, p) }) {
			waits = append(waits, window{s.Start, s.End})
		}
	}
	o.Clock = o.Run - covered(waits)
	return o, nil
}

type window struct{ start, end time.Time }

// covered is the time in which at least one of them was open.
func covered(all []window) (sum time.Duration) {
	slices.SortFunc(all, func(a, b window) int { return a.start.Compare(b.start) })
	var until time.Time
	for _, w := range all {
		if w.start.Before(until) {
			w.start = until
		}
		if w.end.After(w.start) {
			sum += w.end.Sub(w.start)
			until = w.end
		}
	}
	return sum
}

// Print writes a line for each document, and what the whole one costs.
func (a Whole) Print(w io.Writer) {
	if len(a.Most.Runs) == 0 {
		return
	}
	fmt.Fprintf(w, "\nprovision by a whole document (%d rounds; median, min–max, seconds)\n", len(a.Most.Runs))
	for _, d := range []Document{a.Least, a.Most} {
		fmt.Fprintf(w, "  %-6s run %s   own clock %s   own CPU %s\n", d.name, d.of(func(o Own) time.Duration { return o.Run }), d.clock(), d.cpu())
	}
	fmt.Fprintf(w, "  costs  own clock %.3f   own CPU %.3f   bound %.3f\n", (a.Most.clock().Median - a.Least.clock().Median).Seconds(),
		(a.Most.cpu().Median - a.Least.cpu().Median).Seconds(), wholeBound.Seconds())
}

func (d Document) of(what func(Own) time.Duration) Spread {
	var all []time.Duration
	for _, o := range d.Runs {
		all = append(all, what(o))
	}
	return summarise(all)
}

func (d Document) clock() Spread { return d.of(func(o Own) time.Duration { return o.Clock }) }
func (d Document) cpu() Spread   { return d.of(func(o Own) time.Duration { return o.CPU }) }
