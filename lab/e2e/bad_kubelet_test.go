package e2e

import (
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// badKubelet is the one bad input that shows only when the machine has changed:
// kubelet's last lines say what is wrong, and the good configuration repairs it.
func badKubelet(t *testing.T, m *badMachine) {
	for _, c := range []badCase{
		{name: "flag", code: 34, field: "kubelet_config", says: []string{"unknown flag: --no-such-flag"}, hint: "journalctl -u kubelet", within: 20 * time.Second,
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) { c.KubeletConfig.KubeletFlags["--no-such-flag"] = lab.Token })},
		{name: "value", code: 34, field: "kubelet_config", says: []string{"no-such-driver"}, hint: "journalctl -u kubelet", within: 20 * time.Second,
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) {
				c.KubeletConfig.KubeletFlags["--topology-manager-policy"] = "no-such-driver"
			})},
	} {
		t.Run(c.name, func(t *testing.T) { m.crashes(t, c) })
	}
	if r := m.provision(t, badCase{name: "repaired", config: m.document(t)}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	m.wait(t, 0)
	if _, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
	planIsEmpty(t, m.lab, m.node)
}

func (m *badMachine) crashes(t *testing.T, c badCase) {
	t.Helper()
	r := m.provision(t, c)
	c.check(t, m, r)
	if strings.Contains(string(r.Stderr), lab.Token) {
		t.Error("stderr shows the token")
	}
	if t.Failed() {
		t.Logf("stderr:\n%s", r.Stderr)
	}
}
