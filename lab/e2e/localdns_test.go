package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// coreDNSPath is where images have the node's own name server.
const coreDNSPath = "/opt/azure/containers/localdns/binary/coredns"

// localDNSProfile has every plugin that a profile can ask for.
func localDNSProfile() *aksnodeconfigv1.LocalDnsProfile {
	zone := func(to string) *aksnodeconfigv1.LocalDnsOverrides {
		return &aksnodeconfigv1.LocalDnsOverrides{QueryLogging: "Log", Protocol: "PreferUDP", ForwardDestination: to, ForwardPolicy: "RoundRobin",
			MaxConcurrent: proto.Int32(1000), CacheDurationInSeconds: proto.Int32(60), ServeStaleDurationInSeconds: proto.Int32(60), ServeStale: "Verify",
			FailfastAllUnhealthyUpstreams: proto.Bool(true),
			HealthCheck:                   &aksnodeconfigv1.LocalDnsHealthCheck{Duration: proto.String("5s"), NoRec: proto.Bool(true), Domain: proto.String("lab.test")}}
	}
	return &aksnodeconfigv1.LocalDnsProfile{
		EnableLocalDns: true, MemoryLimitInMb: proto.Int32(150), EnableHostsPlugin: true, CriticalFqdns: []string{lab.APIServerName, "absent.lab.test"},
		VnetDnsOverrides: map[string]*aksnodeconfigv1.LocalDnsOverrides{".": zone("VnetDNS"), "cluster.local": zone("ClusterCoreDNS")},
		KubeDnsOverrides: map[string]*aksnodeconfigv1.LocalDnsOverrides{".": zone("VnetDNS"), "cluster.local": zone("ClusterCoreDNS")},
	}
}

// TestLocalDNS: a node with its own name server asks it, and its pods can; a machine
// whose image lacks the program says so at once; leave gives the resolver back.
func TestLocalDNS(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	program, err := l.CoreDNS(within(t, 4*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	coredns, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	cfg := nodeConfig(t, l, func(c *aksnodeconfigv1.Configuration) {
		c.LocalDnsProfile = localDNSProfile()
		// The lab's name server knows no cluster, and says so.
		c.ClusterConfig = &aksnodeconfigv1.ClusterConfig{ClusterNetworkConfig: &aksnodeconfigv1.ClusterNetworkConfig{CoreDnsServiceIp: l.Gateway().String()}}
	})
	n := machineOf(t, l, "localdns", lab.Prebaked, cfg, nil)
	before, list := look(t, n, "/var/lib/containerd", "/opt/azure"), read(t, n, "/etc/resolv.conf")
	delete(before.Live, "sysctl") // kubelet's, see TestLeave

	r, err := n.Exec(within(t, time.Minute), controllerPath, "provision", "--provision-config", configPath)
	if err != nil || r.Code != 219 {
		t.Errorf("without CoreDNS: exit code %d, %v\n%s", r.Code, err, r.Stderr)
	}
	run(t, n, "mkdir", "-p", "/opt/azure/containers/localdns/binary")
	endsAtOnce(t, n)
	if err := n.WriteFile(coreDNSPath, coredns, 0o755); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	provisioned(t, l, n)
	t.Logf("Ready after %.1f s; localdns up in %s", time.Since(start).Seconds(),
		run(t, n, "sh", "-c", "systemctl show -p ExecMainStartTimestampMonotonic -p ActiveEnterTimestampMonotonic localdns.service | tr '\\n' ' '"))
	asksItself(t, n)
	planIsEmpty(t, l, n)
	keepsResolved(t, n)

	if out, code := leaves(t, n, "--kubeconfig", adminPath); code != 4 && code != 0 {
		t.Errorf("leave: exit code %d\n%s", code, out)
	}
	after := look(t, n, "/var/lib/containerd", "/opt/azure")
	delete(after.Live, "sysctl")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	if now := read(t, n, "/etc/resolv.conf"); now != list {
		t.Errorf("name servers before: %s\nafter: %s", list, now)
	}
	if out := run(t, n, "sh", "-c", "ip -br a; ls -d /run/localdns || true"); strings.Contains(out, "169.254.10.") || strings.Contains(out, "/run/localdns\n") {
		t.Errorf("left: %s", out)
	}
}

// asksItself asks both addresses, and the machine's own resolver.
func asksItself(t *testing.T, n *lab.Node) {
	t.Helper()
	if list := read(t, n, "/etc/resolv.conf"); !strings.HasPrefix(list, "nameserver 169.254.10.10\n") {
		t.Errorf("the machine asks %s", list)
	}
	want := strings.Fields(run(t, n, "getent", "ahostsv4", lab.APIServerName))[0]
	run(t, n, "systemctl", "start", "aks-localdns-hosts-setup.service") // which waits for the first
	if hosts := read(t, n, "/run/localdns/hosts"); !strings.Contains(hosts, want+" "+lab.APIServerName) {
		t.Errorf("addresses: %s, want %s", hosts, want)
	}
	log := run(t, n, "journalctl", "-u", "localdns.service", "--no-pager", "-o", "cat")
	if !strings.Contains(log, lab.APIServerName) {
		t.Errorf("the name server was not asked:\n%s", log)
	}
	rules := run(t, n, "nft", "list", "table", "inet", "berth")
	if strings.Count(rules, "notrack") != 8 {
		t.Errorf("rules:\n%s", rules)
	}
	silent(t, n, "systemd-analyze", "verify", "--man=no", "localdns.service", "localdns.slice", "aks-localdns-hosts-setup.service", "aks-localdns-hosts-setup.timer")
	if limit := run(t, n, "systemctl", "show", "-p", "MemoryMax", "-p", "CPUQuotaPerSecUSec", "localdns.slice"); !strings.Contains(limit, "MemoryMax=157286400\n") ||
		!strings.Contains(limit, "CPUQuotaPerSecUSec=2s\n") {
		t.Errorf("limits: %s", limit)
	}
}

// endsAtOnce: nobody waits for a name server that has ended, and the machine does not ask
// it.
func endsAtOnce(t *testing.T, n *lab.Node) {
	t.Helper()
	if err := n.WriteFile(coreDNSPath, []byte("#!/bin/sh\nsleep 0.2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	r, err := n.Exec(within(t, time.Minute), controllerPath, "provision", "--provision-config", configPath)
	if took := time.Since(start); err != nil || r.Code != 216 || took > loaded*20*time.Second {
		t.Errorf("a CoreDNS that ends: exit code %d after %s, %v\n%s", r.Code, took, err, r.Stderr)
	}
	if list := read(t, n, "/etc/resolv.conf"); strings.Contains(list, "169.254") {
		t.Errorf("the machine asks %s", list)
	}
}

// besideResolved is a systemd-resolved that stays up, as systemd orders it: the image
// has none.
const besideResolved = "[Unit]\nBefore=network.target\n[Service]\nExecStart=/bin/sleep infinity\n"

// keepsResolved: the name server can be restarted, and crash again and again, beside
// systemd-resolved, which is restarted for it each time.
func keepsResolved(t *testing.T, n *lab.Node) {
	t.Helper()
	const unit, list = "/run/systemd/system/systemd-resolved.service", "/run/systemd/resolve/resolv.conf"
	if err := n.WriteFile(unit, []byte(besideResolved), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, n, "sh", "-ec", "systemctl unmask -q systemd-resolved; mkdir -p /run/systemd/resolve; grep -v 169.254 /etc/resolv.conf >"+list+"; systemctl daemon-reload; systemctl start systemd-resolved; systemctl restart localdns")
	start := time.Now()
	run(t, n, "systemctl", "restart", "localdns")
	if took := time.Since(start); took > loaded*10*time.Second {
		t.Errorf("a restart takes %s", took)
	}
	run(t, n, "sh", "-ec", `for i in 1 2 3; do
		was=$(systemctl show -p MainPID --value localdns); kill -9 $was
		until now=$(systemctl show -p MainPID --value localdns); [ $now != $was ] && [ $now != 0 ] && systemctl is-active -q localdns; do sleep 0.1; done
	done`)
	if said := run(t, n, "sh", "-c", "systemctl is-active systemd-resolved localdns; cat /run/systemd/resolved.conf.d/*"); said != "active\nactive\n# Written by berth.\n[Resolve]\nDNS=169.254.10.10\n" {
		t.Errorf("after crashes: %s", said)
	}
	// One after the other: localdns restarts the resolver when it stops, in place of another job of that.
	run(t, n, "sh", "-ec", "systemctl stop localdns; systemctl stop systemd-resolved; rm -r "+unit+" /run/systemd/resolve; systemctl mask -q systemd-resolved; systemctl daemon-reload; systemctl start localdns")
}
