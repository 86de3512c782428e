package podnet

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/iptables"
	"github.com/berth-dev/berth/internal/host/memory"
)

// saving is the legacy iptables: it has what it prints, and remembers what it is told.
type saving struct {
	saved string
	told  []string
}

// Run implements host.Runner.
func (s *saving) Run(_ context.Context, c host.Command) (host.Output, error) {
	if strings.HasSuffix(c.Path, "-restore") {
		s.told = append(s.told, string(c.Stdin))
	}
	return host.Output{Stdout: []byte(s.saved)}, nil
}

// TestLegacyKeepsWhatStood: a chain that was there before stays with what leads to it, in
// its table alone.
func TestLegacyKeepsWhatStood(t *testing.T) {
	files := memory.New()
	files.Put("/proc/net/ip_tables_names", "nat\nfilter\n", 0o440)
	program := &saving{saved: `*nat
:PREROUTING ACCEPT [0:0]
:CNI-DN-1 - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:KUBE-MARK - [0:0]
-A PREROUTING -j CNI-HOSTPORT-DNAT
-A PREROUTING -j KUBE-MARK
-A CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-1
-A CNI-HOSTPORT-DNAT -p tcp -j DNAT --to-destination 10.88.0.2:80
COMMIT
*filter
:FORWARD ACCEPT [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:FLANNEL-FWD - [0:0]
:FLANNEL-OLD - [0:0]
-A FORWARD -j CNI-HOSTPORT-DNAT
COMMIT
`}
	before := Before{Filter: set("iptables-legacy nat", "iptables-legacy nat CNI-HOSTPORT-DNAT", "iptables-legacy nat KUBE-MARK", "ip filter CNI-HOSTPORT-DNAT", "iptables-legacy filter FLANNEL-OLD")}
	n := Network{Programs: program, Files: files}
	removed, err := n.removeLegacy(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"chain CNI-DN-1 of iptables-legacy", "chain CNI-HOSTPORT-DNAT of iptables-legacy"}, removed); diff != "" {
		t.Error(diff)
	}
	want := []string{`*nat
-D CNI-HOSTPORT-DNAT -p tcp -j CNI-DN-1
-F CNI-DN-1
-X CNI-DN-1
COMMIT
*filter
-D FORWARD -j CNI-HOSTPORT-DNAT
-F CNI-HOSTPORT-DNAT
-X CNI-HOSTPORT-DNAT
COMMIT
`}
	if diff := cmp.Diff(want, program.told); diff != "" {
		t.Error(diff)
	}
	left, err := n.leftLegacy(t.Context(), before)
	if diff := cmp.Diff([]string{"chain FLANNEL-FWD of iptables-legacy, and what leads to it"}, left); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// shell is a host.Runner for programs that the test's network is for.
type shell struct{}

// Run implements host.Runner.
func (shell) Run(_ context.Context, c host.Command) (host.Output, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Stdin = strings.NewReader(string(c.Stdin))
	out, err := cmd.Output()
	return host.Output{Stdout: out}, err
}

// TestRemoveLegacy: what iptables keeps outside nf_tables.
func TestRemoveLegacy(t *testing.T) {
	ownNetwork(t)
	needs(t, "iptables-legacy")
	if out, err := exec.Command("iptables-legacy", "-t", "nat", "-S").CombinedOutput(); err != nil {
		t.Skipf("the kernel has no legacy tables: %s", out)
	}
	sh(t, strings.ReplaceAll(kubeRules, "$I", "iptables-legacy"))
	sh(t, `iptables-legacy -A FORWARD -s 192.0.2.1 -j DROP`)
	n := Network{Programs: shell{}}
	removed, err := n.clean(context.Background(), iptables.Families[0], Before{})
	if err != nil || len(removed) != 4 {
		t.Errorf("%v, %v", removed, err)
	}
	rules := sh(t, "iptables-legacy-save")
	if strings.Contains(rules, "KUBE-") || strings.Contains(rules, "CNI-") || !strings.Contains(rules, "-A FORWARD -s 192.0.2.1/32 -j DROP") {
		t.Error(rules)
	}
}

// TestWithoutOurs: the script for iptables-restore.
func TestWithoutOurs(t *testing.T) {
	script, chains := withoutOurs(`# Generated
*nat
:PREROUTING ACCEPT [0:0]
:CNI-DN-1 - [0:0]
:DOCKER - [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -m comment --comment "service portals" -j KUBE-SERVICES
-A PREROUTING -j DOCKER
-A KUBE-SERVICES -j CNI-DN-1
-A DOCKER -g CNI-DN-1
-A PREROUTING -m comment --comment "was -j KUBE-SERVICES once, \"then\" -g CNI-DN-1" -j DOCKER
COMMIT
*filter
:FORWARD DROP [0:0]
-A FORWARD -j ACCEPT
COMMIT
`, func(_, chain string) bool { return ours(chain) })
	want := `*nat
-D PREROUTING -m comment --comment "service portals" -j KUBE-SERVICES
-D DOCKER -g CNI-DN-1
-F CNI-DN-1
-F KUBE-SERVICES
-X CNI-DN-1
-X KUBE-SERVICES
COMMIT
*filter
COMMIT
`
	if diff := cmp.Diff(want, script); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"CNI-DN-1", "KUBE-SERVICES"}, chains); diff != "" {
		t.Error(diff)
	}
}
