package e2e

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
