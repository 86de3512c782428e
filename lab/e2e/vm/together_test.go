package vm

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
	"github.com/berth-dev/berth/lab/internal/serve"
)

const (
	// coreDNSPath is where images have the node's own name server.
	coreDNSPath = "/opt/azure/containers/localdns/binary/coredns"
	// proxyURL is of a proxy that nobody needs: what the machine asks for is in the lab.
	proxyURL     = "http://192.0.2.1:3128"
	togetherFile = "/root/together.json"
	resolvConf   = "cat /etc/resolv.conf"
)

// together puts a name server of the node's own, a proxy, swap and a second network
// interface in force by one document, on a node that runs a pod.
func (m *machine) together(t *testing.T) {
	t.Helper()
	m.resolvers = m.sh(t, resolvConf)
	m.giveCoreDNS(t)
	m.step(t, "CoreDNS is there")
	stop := m.startMetadata(t)
	m.sh(t, "cat >"+togetherFile+" <<'EOF'\n"+string(setup.Document(t, setup.Config(t, m.lab, ownKernel, m.moreFields)))+"\nEOF")
	m.becomes(t, togetherFile, 0)
	stop()
	m.ask(t, m.togetherFacts())
	m.step(t, "facts checked")
}

// becomes plans a document, puts it in force, which ends with a code, and has nothing to do
// after that.
func (m *machine) becomes(t *testing.T, document string, code int) {
	t.Helper()
	want := fmt.Sprint(code)
	m.ask(t, map[string]string{setup.BerthPath + " plan -f " + document + " >/dev/null 2>&1; echo $?": "2"})
	m.ask(t, map[string]string{setup.BerthPath + " apply -f " + document + " >/var/tmp/apply.log 2>&1; code=$?; test $code = " + want + " || cat /var/tmp/apply.log; echo $code": want})
	m.ask(t, nothingToDo(document))
	m.step(t, document+" in force")
}

func nothingToDo(document string) map[string]string {
	return map[string]string{setup.BerthPath + " plan -f " + document + " 2>&1; echo $?": "no changes\n0"}
}

func (m *machine) moreFields(c *aksnodeconfigv1.Configuration) {
	c.CustomLinuxOsConfig.EnableSwapConfig, c.CustomLinuxOsConfig.SwapFileSize = true, 32
	c.KubeletConfig.KubeletFlags["--fail-swap-on"] = "false"
	c.HttpProxyConfig = &aksnodeconfigv1.HttpProxyConfig{HttpProxy: proxyURL, HttpsProxy: proxyURL,
		NoProxyEntries: []string{".lab.test", m.lab.Gateway().String(), "127.0.0.0/8", "169.254.169.254"}}
	zone := map[string]*aksnodeconfigv1.LocalDnsOverrides{".": {QueryLogging: "Log", Protocol: "PreferUDP", ForwardDestination: "VnetDNS", ForwardPolicy: "Sequential",
		MaxConcurrent: proto.Int32(1000), CacheDurationInSeconds: proto.Int32(60), ServeStaleDurationInSeconds: proto.Int32(60), ServeStale: "Verify"}}
	c.LocalDnsProfile = &aksnodeconfigv1.LocalDnsProfile{EnableLocalDns: true, VnetDnsOverrides: zone, KubeDnsOverrides: zone}
	c.NetworkConfig.StandardSecondaryNicCount = 1
}

// giveCoreDNS has the machine fetch what an image has.
func (m *machine) giveCoreDNS(t *testing.T) {
	t.Helper()
	program, err := m.lab.CoreDNS(setup.Within(t, 4*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	at, stop := m.serve(t, netip.AddrPortFrom(m.lab.Gateway(), 0), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, program) }))
	defer stop()
	m.sh(t, "curl -sSf --create-dirs -o "+coreDNSPath+" http://"+at+"/ && chmod 755 "+coreDNSPath)
}

// startMetadata has an instance metadata service tell the machine of its two interfaces.
func (m *machine) startMetadata(t *testing.T) (stop func()) {
	t.Helper()
	service := netip.MustParseAddrPort(serve.IMDSAddress)
	if err := m.lab.AddAddress(setup.Within(t, 10*time.Second), service.Addr()); err != nil {
		t.Fatal(err)
	}
	instance := serve.NewInstance(m.Name, "00000000-0000-0000-0000-000000000077", m.MAC(), m.IP.String(), "10.99.0.0", 24)
	for _, c := range m.Cards {
		further := serve.NewInstance(m.Name, "", c.MAC, c.Address().String(), c.Subnet.Addr().String(), c.Subnet.Bits())
		instance.Network.Interface = append(instance.Network.Interface, further.Network.Interface...)
	}
	metadata := serve.NewMetadata(instance)
	_, stop = m.serve(t, service, metadata)
	return stop
}

// serve serves inside the lab until stop, and returns the address.
func (m *machine) serve(t *testing.T, at netip.AddrPort, h http.Handler) (address string, stop func()) {
	t.Helper()
	listener, err := m.lab.Listen(setup.Within(t, 10*time.Second), "tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	s := serve.Start(listener, h)
	return listener.Addr().(*net.TCPAddr).String(), func() {
		if err := s.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
	}
}

// environment prints with which proxy a service runs.
const environment = `for u in containerd kubelet; do tr '\0' '\n' </proc/$(systemctl show -p MainPID --value $u)/environ | grep ^HTTPS_PROXY=; done; true`

func (m *machine) togetherFacts() map[string]string {
	card := m.Cards[0]
	return map[string]string{
		"swapon --show=NAME,TYPE --noheadings | xargs":                                         "/swapfile file",
		"systemctl is-active swapfile.swap localdns.service systemd-networkd.service | xargs":  "active active active",
		"systemctl is-enabled swapfile.swap localdns.service systemd-networkd.service | xargs": "enabled enabled enabled",
		environment:                  "HTTPS_PROXY=" + proxyURL + "\nHTTPS_PROXY=" + proxyURL,
		"head -n 1 /etc/resolv.conf": "nameserver 169.254.10.10",
		"getent ahostsv4 " + lab.APIServerName + " | head -n 1 | cut -d' ' -f1":                                        m.lab.Gateway().String(),
		"journalctl -b -o cat --no-pager -u localdns.service | grep -q " + lab.APIServerName + " && echo it was asked": "it was asked",
		// By its hardware address, and so that the first interface stays the way out.
		"for d in /sys/class/net/*; do grep -q " + card.MAC + " $d/address && ip -o -4 addr show dev ${d##*/} | grep -o 'inet [0-9./]*'; done": "inet " + card.Address().String() + "/24",
		"ip -o route get 192.0.2.1 | grep -o 'dev [a-z0-9]*'; ip -6 route show default":                                                        "dev host0",
	}
}

// besideSwap are facts of a node that has swap.
func besideSwap(facts map[string]string) map[string]string {
	out := map[string]string{}
	for q, a := range facts {
		if !strings.HasPrefix(q, "swapon ") {
			out[q] = a
		}
	}
	return out
}

// apart withdraws all of it: the node is what its first document made it. What the image
// had is kept, which is told; the interface has its address until the next boot.
func (m *machine) apart(t *testing.T) {
	t.Helper()
	const kept = 4
	m.becomes(t, setup.ConfigPath, kept)
	m.ask(t, nodeFacts)
	m.ask(t, map[string]string{
		resolvConf:  m.resolvers,
		environment: "",
		"ls -d /swapfile /etc/berth/swap.json /etc/berth/proxy.env /run/localdns /etc/systemd/network/00-berth* /etc/systemd/system/*swap* /etc/systemd/system/*localdns* 2>/dev/null": "",
		"systemctl list-units --all --no-legend '*.swap' '*localdns*' | grep -v not-found":                                                                                             "",
		"ip -br -4 addr | grep 169.254.10":                                    "",
		"ip rule list | wc -l; nft list table inet berth 2>&1 | grep notrack": "3",
	})
	m.step(t, "withdrawn")
}
