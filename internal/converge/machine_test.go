package converge_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	kubeletUnit    = "[Unit]\nAfter=containerd.service\n[Service]\nExecStart=/opt/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n"
	containerdUnit = "[Service]\nType=notify\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n"
	kubeconfig     = "/var/lib/kubelet/kubeconfig"
	bootstrap      = "/var/lib/kubelet/bootstrap-kubeconfig"
)

// newMachine is an image with containerd and its unit, and no kubelet unit.
func newMachine() *memory.Host {
	h := memory.New()
	h.Put("/usr/bin/containerd", "containerd 2.2.9", 0o755)
	h.Put("/opt/bin/kubelet", "kubelet 1.36.3", 0o755)
	h.Put("/usr/lib/systemd/system/containerd.service", containerdUnit, 0o644)
	h.Put("/etc/containerd/config.toml", "version = 2\n", 0o644)
	h.Value("/proc/sys/net/ipv4/ip_forward", "0")
	h.Program("/usr/sbin/modprobe", func(c host.Command) host.Output {
		h.Value("/proc/sys/net/bridge/bridge-nf-call-iptables", "0")
		return host.Output{}
	})
	h.Reads("kubelet.service", "/etc/default/kubelet", kubeconfig)
	h.Reads("containerd.service", "/etc/containerd/config.toml")
	return h
}

// sampleState is a small node: enough of every kind.
func sampleState(t *testing.T, edit ...func(*desired.State)) *desired.State {
	t.Helper()
	st := &desired.State{Owner: desired.OwnerAKS}
	cred := &desired.ClientCertificate{NodeName: "n1", Server: "https://api", CA: "ca", CAFile: "/etc/kubernetes/certs/ca.crt",
		Token: "abcdef.secret", Kubeconfig: kubeconfig, CertDir: "/var/lib/kubelet/pki", Timeout: time.Minute}
	cred.After = []desired.ID{desired.CheckID(desired.CheckAPIServer)}
	st.Add(
		&desired.Check{Name: desired.CheckAPIServer, Host: "api", Port: 443, Timeout: time.Minute},
		cred,
		&desired.File{Path: bootstrap, Content: desired.SecretBytes([]byte("token")), Mode: 0o600, Life: desired.Transient, Until: cred.ID()},
		&desired.File{Path: "/etc/containerd/config.toml", Content: desired.Text("version = 3\n"), Mode: 0o644, Life: desired.Managed},
		&desired.File{Path: "/etc/systemd/system/containerd.service.d/limits.conf", Content: desired.Text("[Service]\nLimitNOFILE=1048576\n"), Mode: 0o644, Life: desired.Managed},
		&desired.File{Path: "/etc/systemd/system/kubelet.service", Content: desired.Text(kubeletUnit), Mode: 0o644, Life: desired.Managed},
		&desired.File{Path: "/etc/default/kubelet", Content: desired.Text("A=1\n"), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: "/etc/kubernetes/azure.json", Content: desired.SecretBytes([]byte("{}")), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: "/etc/kubernetes/notes", Content: desired.Text("first\n"), Mode: 0o644, Life: desired.Seed},
		&desired.Directory{Path: "/etc/kubernetes/manifests", Mode: 0o700},
		&desired.Link{Path: "/var/log/azure/latest", Target: "cluster.log"},
		&desired.ServingCertificate{CertFile: "/etc/kubernetes/certs/kubeletserver.crt", KeyFile: "/etc/kubernetes/certs/kubeletserver.key", Names: []string{"n1"}},
		&desired.Module{Name: "br_netfilter", Evidence: []string{"/proc/sys/net/bridge/bridge-nf-call-iptables"}},
		&desired.Sysctl{Key: "net.ipv4.ip_forward", Value: "1"},
		&desired.Sysctl{Base: desired.Base{After: []desired.ID{desired.ModuleID("br_netfilter")}}, Key: "net.bridge.bridge-nf-call-iptables", Value: "1"},
		&desired.Unit{Base: desired.Base{After: []desired.ID{"sysctl:net.bridge.bridge-nf-call-iptables"}}, Name: "containerd.service",
			Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{"/etc/containerd/config.toml"}},
		&desired.Unit{Base: desired.Base{After: []desired.ID{"unit:containerd.service", cred.ID()}}, Name: "kubelet.service",
			Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{"/etc/default/kubelet", "/opt/bin/kubelet"}},
	)
	for _, f := range edit {
		f(st)
	}
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	return st
}

// providers stand for network and randomness; they are deterministic.
type providers struct {
	probe, issue error
	// lacks is what a certificate can't be asked for without.
	lacks  error
	probes int
	// key ends the key of each credential; expired: a kept one does not serve.
	key     string
	expired bool
	// creates is whether the Node is created ahead of kubelet; nil: it is not.
	creates func() bool
}

func (p *providers) Probe(context.Context, *desired.Check) error { p.probes++; return p.probe }

func (p *providers) Issue(context.Context, *desired.ClientCertificate) (converge.Credential, error) {
	return converge.Credential{Certificate: []byte("cert"), Key: []byte("key" + p.key)}, p.issue
}

func (p *providers) Lacks(*desired.ClientCertificate) error { return p.lacks }

func (p *providers) Announce(context.Context, *desired.ClientCertificate, converge.Credential) (bool, error) {
	return p.creates != nil && p.creates(), nil
}

func (p *providers) Valid(h host.Host, c *desired.ClientCertificate) (bool, string, error) {
	data, err := h.ReadFile(c.Kubeconfig)
	target, err2 := h.Readlink(c.CertDir + "/kubelet-client-current.pem")
	pem, err3 := h.ReadFile(c.CertDir + "/" + target)
	if err != nil || err2 != nil || err3 != nil || !bytes.Contains(data, []byte(c.Server)) || !bytes.HasPrefix(pem, []byte("certkey")) {
		return false, "no credential", nil
	}
	return true, "", nil
}

func (p *providers) InForce(h host.Host, c *desired.ClientCertificate) (converge.Credential, error) {
	pem, err := h.ReadFile(c.CertDir + "/kubelet-client-berth.pem")
	return converge.Credential{Certificate: pem[:4], Key: pem[4:]}, err
}

func (p *providers) Serves(*desired.ClientCertificate, converge.Credential) bool { return !p.expired }

func (p *providers) Files(c *desired.ClientCertificate, cred converge.Credential) ([]converge.CredentialFile, error) {
	pem := append(append([]byte{}, cred.Certificate...), cred.Key...)
	return []converge.CredentialFile{
		{Path: c.CertDir + "/kubelet-client-berth.pem", Content: desired.SecretBytes(pem)},
		{Path: c.CertDir + "/kubelet-client-current.pem", Target: "kubelet-client-berth.pem"},
		{Path: c.Kubeconfig, Content: desired.SecretBytes([]byte(c.Server))},
	}, nil
}

func selfSigned(names []string, _ time.Time) ([]byte, []byte, error) {
	return fmt.Appendf(nil, "cert %v", names), []byte("serving key"), nil
}

func servingValid(cert, key []byte, names []string, _ time.Time) (bool, string) {
	return string(cert) == fmt.Sprintf("cert %v", names) && string(key) == "serving key", "no pair"
}

func engine(h host.Host, p *providers, edit ...func(*converge.Options)) *converge.Engine {
	o := converge.Options{Host: h, Providers: converge.Providers{Issuer: p, Prober: p, SelfSigned: selfSigned, ServingValid: servingValid},
		Workers: 1, Command: "test", LockTimeout: time.Second}
	for _, f := range edit {
		f(&o)
	}
	return converge.New(o)
}

type machine = memory.Host

// tctx is for arranging machines, where no test's context is at hand.
var tctx = context.Background()

// sumOf is the sha256 of a text.
func sumOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func engineOffline(h host.Host, p *providers) *converge.Engine {
	return engine(h, p, func(o *converge.Options) { o.Offline, o.NoFetch = true, true })
}

// tree is the machine's tree with the ledger as it reads: how a run came to its end
// is not part of it.
func tree(h *machine, under ...string) map[string]string {
	out := h.Tree(under...)
	if _, ok := out[ledgerFile]; ok {
		text, err := json.MarshalIndent(entries(h), "", " ")
		must(err)
		out[ledgerFile] = string(text)
	}
	delete(out, "/var/lib/berth/ended")
	return out
}

// entries is what the ledger says.
func entries(h *machine) map[string]ledger.Entry {
	led, err := new(ledger.Reader).Load(h)
	must(err)
	return led.Entries
}
