package e2e

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

const (
	proxyPassword = "hunter2"
	// proxiedRegistry is known to the proxy alone.
	proxiedRegistry = "images.proxied.example"
)

// proxySite is a site whose only way out is a proxy.
type proxySite struct {
	lab     *lab.Lab
	proxy   *serve.Proxy
	address string // host:port
	ca      string // as the contract has it
}

func serveProxy(t *testing.T, l *lab.Lab) *proxySite {
	t.Helper()
	program, err := l.Workload(within(t, 2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	images := serve.NewRegistry()
	if _, err := images.Push(within(t, time.Minute), "workload:1", serve.StaticImage("workload", program)); err != nil {
		t.Fatal(err)
	}
	cert, err := serve.Stranger("proxy.lab.test")
	if err != nil {
		t.Fatal(err)
	}
	s := &proxySite{lab: l, proxy: serve.NewProxy("lab", proxyPassword, map[string]http.Handler{proxiedRegistry: images}),
		ca: base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}))}
	s.address = fmt.Sprintf("%s:%d", l.Gateway(), listen(t, l, plain(s.proxy)))
	return s
}

// configure has a node reach everything but the lab through the proxy.
func (s *proxySite) configure(direct ...string) func(*aksnodeconfigv1.Configuration) {
	return func(c *aksnodeconfigv1.Configuration) {
		c.HttpProxyConfig = &aksnodeconfigv1.HttpProxyConfig{
			HttpProxy: "http://lab:" + proxyPassword + "@" + s.address, HttpsProxy: "http://" + s.address, ProxyTrustedCa: s.ca,
			NoProxyEntries: append([]string{".lab.test", s.lab.Gateway().String(), "127.0.0.0/8", "169.254.169.254"}, direct...),
		}
	}
}

// trust has containerd ask the registry in plain HTTP, which a proxy can read.
func (s *proxySite) trust() map[string]lab.File {
	hosts := fmt.Sprintf("server = \"http://%[1]s\"\n\n[host.\"http://%[1]s\"]\ncapabilities = [\"pull\", \"resolve\"]\n", proxiedRegistry)
	return map[string]lab.File{"/etc/containerd/certs.d/" + proxiedRegistry + "/hosts.toml": {Content: []byte(hosts)}}
}

// TestProxy: a node pulls through the contract's proxy, its password is where it
// must be and nowhere else, a change restarts who has read it, and the end of it
// leaves the machine as its image was.
func TestProxy(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	s := serveProxy(t, l)
	n := addNode(t, l, lab.NodeConfig{Name: "proxy", Files: s.trust()})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	run(t, n, "sh", "-c", "echo KEPT=1 >>/etc/environment")
	image := read(t, n, "/etc/environment")
	m := &badMachine{l, n}
	if r := m.provision(t, badCase{name: "proxy", config: m.document(t, s.configure()), within: 30 * time.Second}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	runWorkload(t, l, proxiedRegistry+"/workload:1", "proxied-pod", n.Name)
	if !strings.Contains(fmt.Sprint(paths(s.proxy.Requests())), "/v2/workload/blobs/") {
		t.Errorf("the proxy was asked for %v", paths(s.proxy.Requests()))
	}
	t.Run("environment", func(t *testing.T) { s.checkEnvironment(t, n) })
	t.Run("password", func(t *testing.T) { passwordStays(t, n) })
	planIsEmpty(t, l, n)
	become(t, l, n, s.configure("late.example"))
	for _, unit := range []string{"containerd", "kubelet"} {
		if got := environ(t, n, unit); !strings.Contains(got, ",late.example\n") {
			t.Errorf("%s was not started again: %s", unit, got)
		}
	}
	become(t, l, n)
	if got := read(t, n, "/etc/environment"); got != image {
		t.Errorf("/etc/environment was %q, is %q", image, got)
	}
	run(t, n, "sh", "-c", "! ls /etc/berth/proxy.env /etc/apt/apt.conf.d/95proxy 2>&1")
	if got := environ(t, n, "kubelet"); strings.Contains(strings.ToLower(got), "http_proxy") {
		t.Errorf("kubelet still has a proxy: %s", got)
	}
}

func paths(all []serve.Request) []string {
	var out []string
	for _, r := range all {
		out = append(out, fmt.Sprint(r.Path, " ", r.Status))
	}
	return out
}

// environ is what a service runs with.
func environ(t *testing.T, n *lab.Node, unit string) string {
	t.Helper()
	return run(t, n, "sh", "-c", `tr '\0' '\n' </proc/$(systemctl show -p MainPID --value `+unit+`)/environ`)
}

func (s *proxySite) checkEnvironment(t *testing.T, n *lab.Node) {
	with, plainly := "http://lab:"+proxyPassword+"@"+s.address, "http://"+s.address
	for _, unit := range []string{"containerd", "kubelet"} {
		got := environ(t, n, unit)
		if !containsAll(got, "HTTP_PROXY="+with+"\n", "http_proxy="+with+"\n", "HTTPS_PROXY="+plainly+"\n", "no_proxy=.lab.test,") {
			t.Errorf("%s runs with\n%s", unit, got)
		}
	}
	if got := read(t, n, "/etc/environment"); !containsAll(got, "KEPT=1\n", "https_proxy="+plainly+"\n", "HTTPS_PROXY=") {
		t.Errorf("/etc/environment:\n%s", got)
	}
	if got := run(t, n, "apt-config", "dump", "Acquire"); !containsAll(got, `Acquire::http::Proxy "`+with+`";`, `Acquire::https::Proxy "`+plainly+`";`) {
		t.Errorf("apt reads\n%s", got)
	}
	ca, err := base64.StdEncoding.DecodeString(s.ca)
	if err != nil || !strings.Contains(read(t, n, "/etc/ssl/certs/ca-certificates.crt"), strings.TrimSpace(string(ca))) {
		t.Errorf("the proxy's CA is not in the bundle (%v)", err)
	}
}

// passwordStays looks for it where others than root look.
func passwordStays(t *testing.T, n *lab.Node) {
	shown := run(t, n, "systemctl", "show", "containerd", "kubelet") + run(t, n, "journalctl", "-b", "-o", "cat") + run(t, n, berthPath, "render", "-f", configPath)
	if strings.Contains(shown, proxyPassword) {
		t.Error("systemd, the journal or render shows the password")
	}
	for _, p := range strings.Fields(run(t, n, "grep", "-rl", proxyPassword, "/etc", "/var/lib/berth", "/run/berth")) {
		if mode := strings.TrimSpace(run(t, n, "stat", "-c", "%a", p)); mode != "600" {
			t.Errorf("%s has the password and mode %s", filepath.Clean(p), mode)
		}
	}
	r, err := n.Exec(within(t, time.Minute), "grep", "-rl", proxyPassword, "/var/log")
	if err != nil || len(r.Stdout) > 0 {
		t.Errorf("the password stands in %s (%v)", r.Stdout, err)
	}
}
