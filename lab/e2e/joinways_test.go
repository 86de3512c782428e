package e2e

import (
	"encoding/pem"
	"maps"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
	"github.com/berth-dev/berth/lab/internal/site"
)

const (
	// awayPrograms is where nothing is: a mirror has what is said to be there.
	awayPrograms = "https://programs.away.example/"
	// awayRegistry is a registry that nobody runs: a mirror has its images.
	awayRegistry = "images.away.example"
	nodeCertFile = "/etc/berth/node.crt"
	nodeKeyFile  = "/etc/berth/node.key"
)

// TestJoinWays: a bare machine behind a proxy joins with a token out of the environment,
// with programs and images of mirrors, and with addresses of pods of its own. Then its
// document names a certificate, which kubelet goes on with. Leave takes all of it back.
func TestJoinWays(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	progs, proxy, registry := servePrograms(t, l), serveProxy(t, l), serveAwayImages(t, l)
	registry.pushPause(t, l)
	files := tokenAndCA(t, l)
	delete(files, tokenPath)
	maps.Copy(files, proxy.trust())
	n := machineOf(t, l, "join-ways", lab.Bare, nodeConfig(t, l), files)
	document := func(i v1alpha1.Identity) {
		check(t, n.WriteFile(configPath, ownDocument(t, l, behind(proxy), registry.configure, fromAway(progs), func(c *v1alpha1.NodeConfig) {
			c.Identity, c.Networking.PodCIDRs = i, []string{"10.244.77.0/26"}
			c.Networking.ClusterDomain = "cluster.local"
		}), 0o600))
	}
	document(v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{TokenEnv: "JOIN_TOKEN"}})
	before := look(t, n)

	if r, said := joinCommand(t, n); r.ExitCode != 1 || n.Exists("/opt/bin/kubelet") || !strings.Contains(r.Failure.Cause+r.Failure.Hint, "JOIN_TOKEN") || r.Failure.Field != "identity.bootstrapToken" {
		t.Errorf("without the variable: %+v\n%s", r, said)
	}
	r, said := joinWith(t, n, "JOIN_TOKEN="+lab.Token)
	if r.ExitCode != 0 || r.Milestone != "ready" || strings.Contains(said, lab.Token) {
		t.Fatalf("%+v\n%s", r, said)
	}
	if r, said = joinCommand(t, n); r.ExitCode != 0 || r.Changes != 0 {
		t.Errorf("a second join, without the variable: %+v\n%s", r, said)
	}
	pod := runWorkload(t, l, registry.workload, "mirrored-ways", n.Name)
	if ip := netip.MustParseAddr(pod.Status.PodIP); !netip.MustParsePrefix("10.244.77.0/26").Contains(ip) {
		t.Errorf("the pod has %s", ip)
	}
	runWorkload(t, l, proxiedRegistry+"/workload:1", "proxied-ways", n.Name)
	for _, unit := range []string{"containerd", "kubelet"} {
		if got := environ(t, n, unit); !strings.Contains(got, "http_proxy=http://lab:"+proxyPassword+"@"+proxy.address+"\n") {
			t.Errorf("%s runs with\n%s", unit, got)
		}
	}

	cert, key, err := l.Issue("system:node:"+n.Name, "system:nodes")
	check(t, err)
	check(t, n.WriteFile(nodeCertFile, cert, 0o600))
	check(t, n.WriteFile(nodeKeyFile, key, 0o600))
	document(v1alpha1.Identity{ClientCertificate: &v1alpha1.ClientCertificate{CertFile: nodeCertFile, KeyFile: nodeKeyFile}})
	start := time.Now()
	if r, said = joinCommand(t, n); r.ExitCode != 0 || r.Milestone != "ready" || r.Changes == 0 {
		t.Fatalf("with a certificate: %+v\n%s", r, said)
	}
	if got := run(t, n, "cat", "/var/lib/kubelet/kubeconfig"); !strings.Contains(got, nodeCertFile) {
		t.Errorf("kubelet goes on with\n%s", got)
	}
	awaitHeartbeat(t, l, n.Name, start)
	if r, said = joinCommand(t, n); r.ExitCode != 0 || r.Changes != 0 {
		t.Errorf("a second join with the certificate: %+v\n%s", r, said)
	}

	if out, code := leaves(t, n, "--force", "--kubeconfig", adminPath); code != 0 || hasNode(t, l, n.Name) {
		t.Errorf("leave: exit code %d\n%s", code, out)
	}
	run(t, n, "rm", nodeCertFile, nodeKeyFile)
	document(v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{TokenEnv: "JOIN_TOKEN"}})
	if diff := cmp.Diff(before, look(t, n)); diff != "" {
		t.Error(diff)
	}
}

// behind has a node reach everything but the lab through a proxy.
func behind(s *proxySite) func(*v1alpha1.NodeConfig) {
	return func(c *v1alpha1.NodeConfig) {
		c.Proxy = v1alpha1.Proxy{HTTP: v1alpha1.Secret("http://lab:" + proxyPassword + "@" + s.address), NoProxy: []string{".lab.test", s.lab.Gateway().String()}, AllowInline: true}
	}
}

// fromAway names the programs by a path that does not exist, and their mirror.
func fromAway(p *site.Programs) func(*v1alpha1.NodeConfig) {
	return func(c *v1alpha1.NodeConfig) {
		p.ConfigureNode(c)
		var mirror string
		for _, urls := range []*[]string{&c.Components.Kubernetes.URLs, &c.Components.Containerd.URLs, &c.Components.Runc.URLs, &c.Components.CNI.URLs} {
			for i, u := range *urls {
				host := strings.Index(u, "//") + 2
				slash := host + strings.Index(u[host:], "/") + 1
				mirror, (*urls)[i] = u[:slash], awayPrograms+u[slash:]
			}
		}
		c.Artifacts.Mirrors = append(c.Artifacts.Mirrors, v1alpha1.Mirror{Prefix: awayPrograms, URL: mirror})
	}
}

// awayImages are those of a registry behind TLS, with a CA that nobody knows. It stands in for
// one that nobody runs.
type awayImages struct {
	*images
	url, ca string
}

func serveAwayImages(t *testing.T, l *lab.Lab) *awayImages {
	t.Helper()
	program, err := l.Workload(within(t, 2*time.Minute))
	check(t, err)
	r := serve.NewRegistry()
	_, err = r.Push(within(t, time.Minute), "workload:1", serve.StaticImage("workload", program))
	check(t, err)
	cert, err := serve.Stranger(l.Gateway().String())
	check(t, err)
	a := &awayImages{&images{r, awayRegistry, awayRegistry + "/workload:1"}, "", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}))}
	listen(t, l, func(at net.Listener) *serve.Server {
		a.url = "https://" + at.Addr().String()
		return serve.StartTLS(at, cert, r)
	})
	return a
}

func (a *awayImages) configure(c *v1alpha1.NodeConfig) {
	c.Components.SandboxImage, c.Trust.CAs = awayRegistry+"/pause:1", append(c.Trust.CAs, a.ca)
	c.Artifacts.RegistryMirrors = append(c.Artifacts.RegistryMirrors, v1alpha1.RegistryMirror{Registry: awayRegistry, URL: a.url})
}
