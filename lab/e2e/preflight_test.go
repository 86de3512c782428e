package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
)

// checked is what preflight and doctor print as JSON.
type checked struct {
	Status, Cause string
	Seconds       float64
	Checks        []struct{ Name, Status, Finding, Remedy, Field string }
}

// of is what came of a check.
func (c checked) of(name string) string {
	for _, r := range c.Checks {
		if r.Name == name {
			return r.Status + ": " + r.Finding + "\nremedy: " + r.Remedy
		}
	}
	return "there is no check " + name
}

// with are the names of the checks that came to a status.
func (c checked) with(status string) []string {
	var out []string
	for _, r := range c.Checks {
		if r.Status == status {
			out = append(out, r.Name)
		}
	}
	return out
}

// checks runs a command that makes checks; it ends with a code.
func checks(t *testing.T, n *lab.Node, code int, args ...string) checked {
	t.Helper()
	r, err := n.Exec(within(t, time.Minute), args...)
	if err != nil {
		t.Fatal(err)
	}
	var c checked
	if err := json.Unmarshal(r.Stdout, &c); err != nil || r.Code != code {
		t.Fatalf("%s: exit code %d, want %d: %v\n%s%s", args, r.Code, code, err, r.Stdout, r.Stderr)
	}
	t.Logf("%s: %.2f s, cause %q, errors %q, warnings %q, unknown %q", args, c.Seconds, c.Cause, c.with("error"), c.with("warning"), c.with("unknown"))
	return c
}

// preflight checks a document on a machine.
func preflight(t *testing.T, n *lab.Node, code int, text []byte, flags ...string) checked {
	t.Helper()
	if err := n.WriteFile(configPath, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return checks(t, n, code, append([]string{berthPath, "preflight", "-f", configPath, "-o", "json"}, flags...)...)
}

// TestPreflight: a machine with nothing on it is fit to become a node, which is found
// out without a trace; what is broken is named, with a remedy.
func TestPreflight(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	progs := servePrograms(t, l)
	n := addNode(t, l, lab.NodeConfig{Name: "preflight", Flavour: lab.Bare, Files: tokenAndCA(t, l)})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	good := ownDocument(t, l, fromSite(progs))
	if err := n.WriteFile(configPath, good, 0o600); err != nil {
		t.Fatal(err)
	}
	before := look(t, n)
	c := preflight(t, n, 0, good)
	if d := cmp.Diff(before, look(t, n)); d != "" {
		t.Errorf("preflight changed the machine:\n%s", d)
	}
	for _, b := range progs.Blobs() {
		if _, bytes := progs.Count(b.Path); bytes > 0 {
			t.Errorf("%s was fetched, %d bytes", b.Path, bytes)
		}
	}
	if got := c.with("unknown"); !slices.Equal(got, []string{"credential-expiry"}) {
		t.Errorf("unknown: %q\n%s", got, c.of("firewall"))
	}
	warnings := slices.DeleteFunc(c.with("warning"), func(name string) bool { return name == "cgroups" })
	if d := cmp.Diff(scarce(t, n), strings.Join(warnings, " ")); d != "" {
		t.Errorf("warnings: %s\n%s", d, c.of("disk"))
	}
	asNobody(t, n)
	aks := preflight(t, n, 0, document(t, nodeConfig(t, l, progs.Configure)))
	if got := aks.of("artifacts"); !strings.HasPrefix(got, "ok") {
		t.Errorf("an AKS document: %s", got)
	}
	run(t, n, "systemd-run", "--quiet", "--unit=taken", "--socket-property=ListenStream=10250", "/bin/true")
	if got := preflight(t, n, 1, good).of("ports"); !strings.Contains(got, "port 10250 is in use by systemd (pid 1)") {
		t.Error(got)
	}
	run(t, n, "systemctl", "stop", "taken.socket")
	brokenDocuments(t, l, n)
}

// scarce is the name of the check that warns where the machine of the lab has less room than
// is advised, which is no failure of the test; "" where there is enough.
func scarce(t *testing.T, n *lab.Node) string {
	t.Helper()
	const measure = `for d in /var/lib/kubelet /var/lib/containerd /usr/local; do
		while [ ! -e "$d" ]; do d=$(dirname "$d"); done
		stat -f -c '%a %S %c %d' "$d"
	done`
	for line := range strings.Lines(run(t, n, "sh", "-ec", measure)) {
		var blocks, size, files, freeFiles uint64
		if _, err := fmt.Sscan(line, &blocks, &size, &files, &freeFiles); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if blocks*size < 8<<30 || files > 0 && freeFiles < 100_000 {
			return "disk"
		}
	}
	return ""
}

// asNobody makes the checks without any right.
func asNobody(t *testing.T, n *lab.Node) {
	t.Helper()
	c := checks(t, n, 0, "sh", "-c", "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "+berthPath+" preflight -o json -f - <"+configPath)
	for _, name := range []string{"credential", "credential-expiry", "approval", "firewall"} {
		if !slices.Contains(c.with("unknown"), name) {
			t.Errorf("%s: %s", name, c.of(name))
		}
	}
	if got := c.of("api-server"); !strings.HasPrefix(got, "ok") {
		t.Error(got)
	}
}

// brokenDocuments are right in form, and wrong for this machine and cluster.
func brokenDocuments(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	const expired = "expird.0123456789abcdef"
	if err := l.AddToken(within(t, 10*time.Second), expired, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	darken(t, l)
	nowhere := v1alpha1.Component{Version: "1.4.3", URLs: []string{"https://" + darkAddress + "/runc"}}
	for name, c := range map[string]struct {
		edit  func(*v1alpha1.NodeConfig)
		finds map[string]string
	}{
		"another CA": {func(c *v1alpha1.NodeConfig) { c.Cluster.CAFile, c.Cluster.CA = "", anotherCA(t) },
			map[string]string{"api-trust": "error: the certificate of", "credential": "unknown: the cluster can't be asked"}},
		"expired token": {func(c *v1alpha1.NodeConfig) {
			c.Identity = v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{Token: expired}, AllowInline: true}
		}, map[string]string{"credential": "remedy: kubeadm token create", "api-server": "ok"}},
		"no token": {func(c *v1alpha1.NodeConfig) { c.Identity.BootstrapToken.TokenFile = "/etc/berth/none" },
			map[string]string{"credential": "error: "}},
		"no such name": {func(c *v1alpha1.NodeConfig) { c.Cluster.Server = "https://no-such-server.invalid" },
			map[string]string{"dns": "error: no-such-server.invalid", "api-server": "error: "}},
		"no way to anything": {func(c *v1alpha1.NodeConfig) {
			c.Cluster.Server = "https://" + darkAddress
			c.Components.Runc, c.Components.Containerd, c.Components.CNI = nowhere, nowhere, nowhere
			c.Components.Kubernetes.URLs = nowhere.URLs
		}, map[string]string{"api-server": "error: ", "artifacts": "error: ", "clock": "unknown: ", "credential": "unknown: "}},
		"no way to a cluster whose CA is to be found out": {func(c *v1alpha1.NodeConfig) {
			c.Cluster = v1alpha1.Cluster{Server: "https://" + darkAddress, CACertHash: "sha256:" + strings.Repeat("0a", 32)}
		}, map[string]string{"document": "error: CA of the cluster", "api-server": "error: ", "artifacts": "unknown: "}},
	} {
		r := preflight(t, n, 1, ownDocument(t, l, c.edit))
		for check, want := range c.finds {
			if got := r.of(check); !strings.Contains(got, want) {
				t.Errorf("%s: %s: %s", name, check, got)
			}
		}
		if r.Seconds > 15 {
			t.Errorf("%s: it took %.2f s", name, r.Seconds)
		}
	}
}

// anotherCA is one that has signed nothing.
func anotherCA(t *testing.T) string {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestDoctor: a node that is Ready is well; one that is not says why. The machine becomes
// a node, and is given back, under the name of AKS Flex Node.
func TestDoctor(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "doctor", Files: flexFiles(t, l, flexToken)})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	run(t, n, "ln", "-s", berthPath, flexPath)
	kubeletWas(t, n)
	before := look(t, n, "/var/lib/containerd")
	bootstraps(t, l, n)
	c := checks(t, n, 0, berthPath, "doctor", "-o", "json")
	if got := c.with("unknown"); len(got) > 0 {
		t.Errorf("unknown: %q", got)
	}
	gateway := l.Gateway().String()
	for _, broken := range []struct{ name, by, repair, cause, says string }{
		{"kubelet stopped", "systemctl stop kubelet", "systemctl start kubelet", "kubelet", "kubelet.service is inactive"},
		{"containerd stopped", "systemctl stop containerd", "systemctl start containerd kubelet", "containerd", "containerd.service is inactive"},
		{"API server away", "ip route add blackhole " + gateway + "/32", "ip route del blackhole " + gateway + "/32", "api-server", gateway},
		{"no network of pods", "mkdir -p /run/kept && mv /etc/cni/net.d/* /run/kept/", "mv /run/kept/* /etc/cni/net.d/", "cni", "no configuration"},
	} {
		run(t, n, "sh", "-ec", broken.by)
		c := checks(t, n, 1, berthPath, "doctor", "-o", "json")
		if got := c.of(broken.cause); c.Cause != broken.cause || !strings.Contains(got, broken.says) {
			t.Errorf("%s: cause %q; %s", broken.name, c.Cause, got)
		}
		if c.Seconds > 15 {
			t.Errorf("%s: it took %.2f s", broken.name, c.Seconds)
		}
		run(t, n, "sh", "-ec", broken.repair)
	}
	eventually(t, "the node is well again", 30*time.Second, func() bool {
		r, err := n.Exec(within(t, time.Minute), berthPath, "doctor")
		return err == nil && r.Code == 0
	})
	unbootstraps(t, n, before)
}
