package e2e

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-dev/berth/lab"
)

const agentKubeconfig = agentDir + "/credentials/kubeconfig"

// certificateRenewed: a certificate near its end is renewed with itself while the
// agent runs, and the agent goes on with the new one when the old one has ended.
func (m *agentMachine) certificateRenewed(t *testing.T) {
	run(t, m.node, "systemctl", "stop", agentUnit)
	config, user := m.credential(t)
	now := time.Now()
	until := now.Add(16 * time.Second) // due 5 to 9 s from now
	short, err := m.lab.Reissue(user.ClientCertificateData, now.Add(-40*time.Second), until)
	check(t, err)
	user.ClientCertificateData = short
	text, err := clientcmd.Write(*config)
	check(t, err)
	check(t, m.node.WriteFile(agentKubeconfig, text, 0o600))
	run(t, m.node, "systemctl", "start", agentUnit)
	was := m.invocation(t, agentUnit)
	succeeds(t, func(context.Context) error {
		if _, user := m.credential(t); bytes.Equal(user.ClientCertificateData, short) {
			return errors.New("the certificate is not renewed")
		}
		return nil
	})
	time.Sleep(time.Until(until.Add(time.Second)))
	m.applied(t, m.ask(t, hello("renewed")))
	if got := m.invocation(t, agentUnit); got != was {
		t.Error("the agent was restarted for its certificate")
	}
	if log := run(t, m.node, "journalctl", "--no-pager", "-o", "cat", "_SYSTEMD_INVOCATION_ID="+was); strings.Contains(log, "nauthorized") {
		t.Errorf("the agent went on with the old certificate:\n%s", log)
	}
}

// credential is what the agent shows to the API server.
func (m *agentMachine) credential(t *testing.T) (*clientcmdapi.Config, *clientcmdapi.AuthInfo) {
	t.Helper()
	text, err := m.node.ReadFile(agentKubeconfig)
	check(t, err)
	config, err := clientcmd.Load(text)
	check(t, err)
	return config, config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
}

// noApprover: where nobody approves, the agent says what would end the wait, and waits; with
// that it goes on. Neither it nor kubelet is started anew.
func (m *agentMachine) noApprover(t *testing.T) {
	defer leaveAgent(agentPrefix + m.node.Name)()
	run(t, m.node, "systemctl", "stop", agentUnit)
	run(t, m.node, "rm", agentKubeconfig)
	check(t, m.node.WriteFile(agentDir+"/credentials/bootstrap-token", []byte(lab.Token), 0o600))
	kubelet := m.invocation(t, "kubelet.service")
	run(t, m.node, "systemctl", "start", agentUnit)
	was := m.invocation(t, agentUnit)
	var remedy string
	eventually(t, "the word of it", 40*time.Second, func() bool {
		says := run(t, m.node, "systemctl", "show", "-P", "StatusText", agentUnit)
		remedy = regexp.MustCompile(`kubectl certificate approve (node-agent-csr-\S+)`).FindString(says)
		return strings.Contains(says, "not approved since") && remedy != ""
	})
	kubectl(t, m.lab, strings.Fields(remedy)[1:]...)
	m.applied(t, m.ask(t, hello("approved")))
	if m.invocation(t, agentUnit) != was || m.invocation(t, "kubelet.service") != kubelet {
		t.Error("the agent or kubelet was started anew")
	}
	if says := strings.TrimSpace(run(t, m.node, "systemctl", "show", "-P", "StatusText", agentUnit)); says != "" {
		t.Errorf("it still says %q", says)
	}
}
