package vm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
)

const (
	publishedDir  = "/var/lib/gardener-node-agent"
	publishedUnit = "gardener-node-agent.service"
	clockSecret   = "gardener-node-agent-clock-0123456789abcdef"
	clockGroup    = "example.com:clock"
	clockFile     = "/etc/clock/file"
	triedFile     = "/root/tried.yaml"
)

// clock sets the machine's clock an hour ahead, an hour back and forty days ahead under an
// agent. All its times go on by running time, it keeps the machine and its Lease,
// and it is the same process. An agent that starts with a wrong clock goes on by itself
// when the clock is right.
func (m *machine) clock(t *testing.T) {
	m.agentWorks(t)
	was := m.agentProcess(t)
	pause, apply := setup.BerthPath+" agent pause --for ", setup.BerthPath+" apply -f "+triedFile+" --confirm-within "
	for _, c := range []struct {
		by            time.Duration
		before, after string
	}{
		// What lasts longer than the jump says is not over; what is over ends on time.
		{time.Hour, pause + "30m", "echo paused >" + clockFile + "; sleep 2; grep paused " + clockFile + "; " + pause + "0s"},
		// In an emulated machine systemd alone takes five seconds to read its units anew for the
		// timer, and the trial takes five: there has to be time left to confirm.
		{-time.Hour, apply + "30s; " + pause + "3s", ""},
		{40 * 24 * time.Hour, apply + "10m", "sleep 2; grep tried " + clockFile + "; " + setup.BerthPath + " status | grep 'confirm within 9m'; " +
			setup.BerthPath + " confirm"},
	} {
		m.sh(t, "set -e; "+c.before+"; "+setClock(c.by))
		m.sh(t, "set -e; "+c.after)
		m.repairedWithin(t, "what was put off", time.Minute) // a trial of 30 s, and the way back
		m.renewed(t, c.by)
		m.sh(t, "echo edited >"+clockFile)
		m.repaired(t, "drift")
		if now := m.agentProcess(t); now != was {
			t.Errorf("after %s the agent is %s, was %s", c.by, now, was)
		}
		m.step(t, "clock set by "+c.by.String())
	}
	m.overByTheClock(t)
	m.sh(t, setup.BerthPath+" agent reset; test ! -e "+clockFile)
	m.step(t, "agent is gone")
}

// idleMachine is a machine with its own kernel that nobody provisions, and its Node.
func idleMachine(t *testing.T, l *lab.Lab, name string) *machine {
	t.Helper()
	v, err := l.AddVM(setup.Within(t, vmDeadline), lab.VMConfig{Name: name, UserData: []byte("#cloud-config\n{}\n"), KernelLine: withoutLateStages})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{VM: v, lab: l, last: time.Now()}
	t.Cleanup(func() {
		if t.Failed() && v.Running() {
			m.logState(t)
		}
		if err := v.Remove(setup.Within(t, time.Minute)); err != nil {
			t.Errorf("remove machine: %v", err)
		}
	})
	m.awaitAgent(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := l.Client().CoreV1().Nodes().Create(setup.Within(t, time.Minute), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.sh(t, "until systemctl is-active multi-user.target; do sleep 0.1; done")
	m.step(t, "booted")
	return m
}

// setClock is a command that sets the machine's clock to the right time and by more.
func setClock(by time.Duration) string {
	return fmt.Sprintf("date -s @%d", time.Now().Add(by).Unix())
}

// agentWorks gives the machine an agent with a document and a certificate of twenty days.
func (m *machine) agentWorks(t *testing.T) {
	t.Helper()
	setup.ApplyRBAC(t, m.lab, "--name", "clock", "--group", clockGroup, "--secret", clockSecret)
	setup.ApproveAgents(t, m.lab)
	ca, err := m.lab.CA()
	if err != nil {
		t.Fatal(err)
	}
	document := clockDocument("kept")
	sum := sha256.Sum256([]byte(document))
	s := &corev1.Secret{Data: map[string][]byte{"osc.yaml": []byte(document)}, ObjectMeta: metav1.ObjectMeta{
		Name: clockSecret, Annotations: map[string]string{"checksum/data-script": hex.EncodeToString(sum[:])}}}
	secrets := m.lab.Client().CoreV1().Secrets("kube-system")
	if _, err := secrets.Create(setup.Within(t, time.Minute), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := secrets.Delete(setup.Within(t, time.Minute), clockSecret, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	m.sh(t, `set -e
mkdir -p `+publishedDir+`/credentials /etc/berth
cd `+publishedDir+`
echo `+m.Name+` >machine-name
echo `+lab.Token+` >credentials/bootstrap-token
cat >ca.crt <<EOF
`+string(ca)+`
EOF
cat >`+triedFile+` <<EOF
`+clockDocument("tried")+`
EOF
cat >/etc/berth/agent.yaml <<EOF
{jitter: 0s, group: "`+clockGroup+`", lease: {renew: 5s}, drift: {stormGuard: {repairs: 50}}}
EOF
cat >config-v0.0.1.yaml <<EOF
apiVersion: nodeagent.config.gardener.cloud/v1alpha1
kind: NodeAgentConfiguration
apiServer: {server: "`+m.lab.APIServer()+`", caFile: `+publishedDir+`/ca.crt}
controllers:
  operatingSystemConfig: {secretName: `+clockSecret+`, kubernetesVersion: `+m.lab.KubernetesVersion()+`}
EOF
`+setup.BerthPath+` agent bootstrap`)
	m.repaired(t, "document")
	m.step(t, "the agent works")
	m.shorten(t, 20*24*time.Hour)
}

func clockDocument(text string) string {
	return "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\nspec:\n  files:\n  - path: " + clockFile +
		"\n    permissions: 420\n    content: {inline: {data: " + text + "}}\n"
}

// shorten gives the agent a certificate with another lifetime.
func (m *machine) shorten(t *testing.T, life time.Duration) {
	t.Helper()
	const kubeconfig = publishedDir + "/credentials/kubeconfig"
	ctx := setup.Within(t, vmDeadline)
	m.sh(t, "systemctl stop "+publishedUnit)
	text, err := m.ReadFile(ctx, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	now := time.Now()
	if user.ClientCertificateData, err = m.lab.Reissue(user.ClientCertificateData, now.Add(-5*time.Minute), now.Add(life)); err != nil {
		t.Fatal(err)
	}
	if text, err = clientcmd.Write(*config); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteFile(ctx, kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	m.sh(t, "systemctl start "+publishedUnit)
}

// repaired waits until the file is as the agent's document says, and logs how long that
// took by the running time of the machine.
func (m *machine) repaired(t *testing.T, what string) {
	t.Helper()
	m.repairedWithin(t, what, 30*time.Second)
}

func (m *machine) repairedWithin(t *testing.T, what string, limit time.Duration) {
	t.Helper()
	out := m.sh(t, `up() { cut -d' ' -f1 /proc/uptime | tr -d .; }
from=$(up)
until test "$(cat `+clockFile+` 2>/dev/null)" = kept; do
	test $(($(up) - from)) -lt `+fmt.Sprint(limit.Milliseconds()/10)+` || { cat `+clockFile+`; journalctl --no-pager -n 30 -u `+publishedUnit+`; exit 1; }
	sleep 0.05
done
echo $(($(up) - from))0 ms`)
	t.Logf("%s after %s", what, strings.TrimSpace(out))
}

// renewed waits until the Lease has a time of the machine's clock as it is set now.
func (m *machine) renewed(t *testing.T, by time.Duration) {
	t.Helper()
	w, err := m.lab.Client().CoordinationV1().Leases("kube-system").Watch(setup.Within(t, time.Minute),
		metav1.ListOptions{FieldSelector: "metadata.name=gardener-node-agent-" + m.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		l, ok := e.Object.(*coordinationv1.Lease)
		if ok && l.Spec.RenewTime != nil && time.Since(l.Spec.RenewTime.Add(-by)).Abs() < 30*time.Second {
			return
		}
	}
	t.Errorf("no Lease with the time %s from now", by)
}

// agentProcess is which process the agent is, and how often it was started anew.
func (m *machine) agentProcess(t *testing.T) string {
	t.Helper()
	return strings.Join(strings.Fields(m.sh(t, "systemctl show -p MainPID -p NRestarts -p ActiveState "+publishedUnit)), " ")
}

// overByTheClock: an agent that starts while the clock is ahead of the end of its
// certificate, and of the API server's, says so and keeps the machine as it is asked to;
// it goes on by itself when the clock is right.
func (m *machine) overByTheClock(t *testing.T) {
	t.Helper()
	m.sh(t, "systemctl restart "+publishedUnit)
	was := m.agentProcess(t)
	said := m.sh(t, `id=$(systemctl show -p InvocationID --value `+publishedUnit+`)
for i in $(seq 300); do
	journalctl -o cat --no-pager _SYSTEMD_INVOCATION_ID=$id | grep 'no way to the API server yet' && break
	sleep 0.05
done
systemctl show -p StatusText `+publishedUnit)
	for _, word := range []string{"StatusText=", "expired"} {
		if !strings.Contains(said, word) {
			t.Errorf("nothing is said of %q:\n%s", word, said)
		}
	}
	t.Log(said)
	m.sh(t, "echo edited >"+clockFile)
	m.repaired(t, "drift")
	m.sh(t, setClock(0))
	m.renewed(t, 0)
	if now := m.agentProcess(t); now != was {
		t.Errorf("the agent is %s, was %s", now, was)
	}
	log := m.sh(t, "journalctl -b -o cat --no-pager -u "+publishedUnit)
	for _, word := range []string{"panic", "goroutine", "SIG", "Failed with result"} {
		if strings.Contains(log, word) {
			t.Errorf("the log has %q:\n%s", word, log)
		}
	}
	m.step(t, "the certificate serves again")
}
