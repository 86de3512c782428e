package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/lab"
)

// agentMachine is a node with an agent. secret has its document, token what it keeps
// in a file; group is in its certificate. before is the machine without its agent.
type agentMachine struct {
	lab                  *lab.Lab
	node                 *lab.Node
	secret, token, group string
	before               []string
}

// newAgent has provision make a node whose agent has its rights, and is not there yet.
func newAgent(t *testing.T, name string, files map[string]lab.File) *agentMachine {
	t.Helper()
	l := sharedLab(t)
	m := agentOf(t, l, name)
	m.node = agentNode(t, l, name, files)
	m.provisioned(t)
	return m
}

// agentOf is an agent of a pool, which has its rights.
func agentOf(t *testing.T, l *lab.Lab, pool string) *agentMachine {
	t.Helper()
	m := &agentMachine{lab: l, secret: "gardener-node-agent-" + pool + "-0123456789abcdef", token: pool + "-token", group: "example.com:" + pool}
	applyRBAC(t, l, "--name", pool, "--group", m.group, "--secret", m.secret, "--token-secret", m.token)
	approveAgents(t, l)
	return m
}

// agentNode boots a machine that provision makes a node.
func agentNode(t *testing.T, l *lab.Lab, name string, files map[string]lab.File) *lab.Node {
	t.Helper()
	return addNode(t, l, lab.NodeConfig{Name: name, UserData: customData(t, nodeConfig(t, l)), Files: files})
}

// provisioned waits until provision has made the machine a node.
func (m *agentMachine) provisioned(t *testing.T) {
	t.Helper()
	if _, err := m.lab.WaitNodeReady(within(t, 90*time.Second), m.node.Name); err != nil {
		t.Fatal(err)
	}
	run(t, m.node, controllerPath, "provision-wait")
}

// agentPart is one part of what a test follows.
type agentPart struct {
	name string
	run  func(*testing.T)
}

// parts runs one part after another, each on the machine as the one before left it.
func (m *agentMachine) parts(t *testing.T, parts []agentPart) {
	t.Helper()
	for _, part := range parts {
		if !t.Run(part.name, part.run) {
			t.Fatalf("after %s the node is not what the other parts expect:\n%s", part.name,
				run(t, m.node, "journalctl", "--no-pager", "-n", "60", "-u", agentUnit, "-u", "berth-revert.service", "-u", "berth-restore.service"))
		}
	}
}

// oscFile is one file of a document.
func oscFile(path, text string) string {
	return fmt.Sprintf("  - path: %s\n    permissions: 420\n    content: {inline: {data: %q}}\n", path, text)
}

// oscUnit is one unit of a document, with the files whose change restarts it.
func oscUnit(name, text string, files ...string) string {
	return fmt.Sprintf("  - name: %s\n    command: start\n    enable: true\n    content: %q\n    filePaths: [%s]\n", name, text, strings.Join(files, ", "))
}

func oscDocument(files, units string) string {
	return "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\nspec:\n  files:\n" + files + "  units:\n" + units
}

// ask puts a document into the Secret and returns its checksum.
func (m *agentMachine) ask(t *testing.T, document string) string {
	t.Helper()
	return m.askWith(t, document, nil)
}

// askWith is ask with annotations of the Secret.
func (m *agentMachine) askWith(t *testing.T, document string, annotations map[string]string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(document))
	checksum := hex.EncodeToString(sum[:])
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: m.secret, Annotations: map[string]string{"checksum/data-script": checksum}},
		Data: map[string][]byte{"osc.yaml": []byte(document)}}
	maps.Copy(s.Annotations, annotations)
	secrets := m.lab.Client().CoreV1().Secrets("kube-system")
	ctx := within(t, 10*time.Second)
	_, err := secrets.Update(ctx, s, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(ctx, s, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return checksum
}

// applied waits until the Node says that a document is in force.
func (m *agentMachine) applied(t *testing.T, checksum string) *corev1.Node {
	t.Helper()
	start := time.Now()
	node, err := m.lab.WaitNode(within(t, time.Minute), m.node.Name, func(n *corev1.Node) bool { return n.Annotations[agentApplied] == checksum })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("in force after %.3f s", time.Since(start).Seconds())
	return node
}

const (
	helloUnit = "[Unit]\nDescription=hello\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
	helloFile = "/etc/hello/a.conf"
)

// told writes what the agent is told, and the options of these tests.
func (m *agentMachine) told(t *testing.T) {
	t.Helper()
	ca, err := m.lab.CA()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cluster-ca.crt": string(ca), "machine-name": m.node.Name, "credentials/bootstrap-token": lab.Token,
		"config-v0.0.1.yaml": m.config(agentTokenFile), "zone": "zone-1\n",
	} {
		run(t, m.node, "mkdir", "-p", agentDir+"/credentials", "/etc/berth")
		if err := m.node.WriteFile(agentDir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.node.WriteFile(optionsFile, m.optionsOf(agentOptions), 0o600); err != nil {
		t.Fatal(err)
	}
}

// config is the agent's, with files for its token.
func (m *agentMachine) config(tokenFiles ...string) string {
	var tokens []string
	for _, p := range tokenFiles {
		tokens = append(tokens, "{secretName: "+m.token+", path: "+p+"}")
	}
	return fmt.Sprintf("apiVersion: nodeagent.config.gardener.cloud/v1alpha1\nkind: NodeAgentConfiguration\n"+
		"apiServer: {server: %q, caFile: %s/cluster-ca.crt}\ncontrollers:\n  operatingSystemConfig: {secretName: %s, kubernetesVersion: %s}\n"+
		"  token: {syncConfigs: [%s]}\n", m.lab.APIServer(), agentDir, m.secret, m.lab.KubernetesVersion(), strings.Join(tokens, ", "))
}

// lease is the agent's heartbeat.
func (m *agentMachine) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	ctx := within(t, 30*time.Second)
	for {
		l, err := m.lab.Client().CoordinationV1().Leases("kube-system").Get(ctx, "gardener-node-agent-"+m.node.Name, metav1.GetOptions{})
		if err == nil {
			return l
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// hello is the document that most parts start from, with a text for its file.
func hello(text string) string {
	return oscDocument(oscFile(helloFile, text), oscUnit("hello.service", helloUnit, helloFile))
}

// invocation is the run of a unit.
func (m *agentMachine) invocation(t *testing.T, unit string) string {
	t.Helper()
	return strings.TrimSpace(run(t, m.node, "systemctl", "show", "-p", "InvocationID", "--value", unit))
}

// becomes waits until a file holds a text: the agent looks at everything every ten
// minutes only, so that what happens here comes of what it is told.
func (m *agentMachine) becomes(t *testing.T, path, text string) {
	t.Helper()
	start := time.Now()
	script := fmt.Sprintf("until [ \"$(cat %s)\" = %q ]; do sleep 0.02; done", path, text)
	if err := m.node.Run(within(t, 30*time.Second), "sh", "-c", script); err != nil {
		t.Fatalf("%s did not become %q: %v", path, text, err)
	}
	t.Logf("%s after %.3f s", path, time.Since(start).Seconds())
}

// event waits for an event about the Node.
func (m *agentMachine) event(t *testing.T, reason, text string) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	events := m.lab.Client().CoreV1().Events("default")
	w, err := events.Watch(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if got, ok := e.Object.(*corev1.Event); ok && got.InvolvedObject.Name == m.node.Name && strings.Contains(got.Message, text) {
			return
		}
	}
	t.Errorf("no event %s with %q", reason, text)
}

// condition waits until the Node's condition has a status, and returns its message.
func (m *agentMachine) condition(t *testing.T, status corev1.ConditionStatus) string {
	t.Helper()
	var message string
	_, err := m.lab.WaitNode(within(t, time.Minute), m.node.Name, func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == "OperatingSystemConfigApplied" && c.Status == status {
				message = c.Message
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Errorf("the condition does not become %s: %v", status, err)
	}
	return message
}
