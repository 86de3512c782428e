package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// TestApprover runs the approver with the rights of docs/approver.md, and has a token,
// an agent and strangers ask for certificates.
func TestApprover(t *testing.T) {
	l := sharedLab(t)
	applyRBAC(t, l, "--secret", "approver-pool")
	startApprover(t, l, "appr-*")
	token := tokenClient(t, l, lab.Token)
	t.Run("joins", func(t *testing.T) {
		csr := askForMachine(t, token, "appr-1")
		awaitApproval(t, l, csr)
		if len(signed(t, l, csr)) == 0 {
			t.Error("no certificate")
		}
	})
	t.Run("renews", func(t *testing.T) {
		makeNode(t, l, "appr-2")
		awaitApproval(t, l, askForMachine(t, clientOf(t, l, agentPrefix+"appr-2", agentsGroup), "appr-2"))
	})
	for _, c := range []struct {
		name, machine, says string
		by                  kubernetes.Interface
	}{
		{"another machine", "other-1", "none of those that may join", token},
		{"another agent", "appr-3", "neither that agent nor a bootstrap token", clientOf(t, l, agentPrefix+"appr-1", agentsGroup)},
		{"a kubelet", "appr-3", "neither that agent nor a bootstrap token", clientOf(t, l, "system:node:appr-3", "system:nodes", agentsGroup)},
	} {
		t.Run(c.name, func(t *testing.T) { awaitLeft(t, l, askForMachine(t, c.by, c.machine), c.says) })
	}
	t.Run("has joined", func(t *testing.T) {
		makeNode(t, l, "appr-4")
		awaitLeft(t, l, askForMachine(t, token, "appr-4"), "machine appr-4 has joined")
	})
}

// TestApproverPod runs the approver as docs/approver.md says, with an image of this
// program: as a pod, it approves who may join and leaves who may not.
func TestApproverPod(t *testing.T) {
	l := sharedLab(t)
	applyRBAC(t, l, "--secret", "approver-pool")
	check(t, l.AddName("kubernetes.default.svc", l.Gateway()))
	reg := serveImages(t, l)
	_, err := reg.Push(within(t, time.Minute), "berth:v1", serve.Image{Files: []serve.Entry{{Name: "usr/local/bin/berth", Source: l.Berth()}}})
	check(t, err)
	byLab := nodeConfig(t, l, func(c *aksnodeconfigv1.Configuration) {
		c.KubeletConfig.KubeletFlags["--cluster-dns"] = l.Gateway().String()
	})
	n := addNode(t, l, lab.NodeConfig{Name: "approver", UserData: customData(t, byLab), Files: reg.trust()})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	manifest(t, l, "registry.example/berth:v1", reg.server+"/berth:v1")
	kubectl(t, l, "rollout", "status", "-n", "kube-system", "deployment/berth-approver", "--timeout=60s")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(kubectl(t, l, "logs", "-n", "kube-system", "deployment/berth-approver"))
		}
	})
	token := tokenClient(t, l, lab.Token)
	awaitApproval(t, l, askForMachine(t, token, "pool-a-1"))
	awaitLeft(t, l, askForMachine(t, token, "other-1"), "none of those that may join")
}

func makeNode(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	nodes := l.Client().CoreV1().Nodes()
	_, err := nodes.Create(within(t, 10*time.Second), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() { check(t, nodes.Delete(context.Background(), name, metav1.DeleteOptions{})) })
}

func tokenClient(t *testing.T, l *lab.Lab, token string) kubernetes.Interface {
	t.Helper()
	cfg := rest.AnonymousClientConfig(l.RESTConfig())
	cfg.BearerToken = token
	c, err := kubernetes.NewForConfig(cfg)
	check(t, err)
	return c
}

// askForMachine asks as an agent does; it returns the request's name.
func askForMachine(t *testing.T, c kubernetes.Interface, machine string) string {
	t.Helper()
	csr, _, err := requestCertificate(within(t, 20*time.Second), c, "appr-", agentPrefix+machine, agentsGroup)
	if err != nil {
		t.Fatal(err)
	}
	return csr.Name
}

func awaitApproval(t *testing.T, l *lab.Lab, name string) {
	t.Helper()
	succeeds(t, func(ctx context.Context) error {
		r, err := l.Client().CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range r.Status.Conditions {
			if c.Type == certificatesv1.CertificateApproved && c.Reason == "AgentRequestApproved" {
				return nil
			}
		}
		return fmt.Errorf("request %s is not approved: %+v", name, r.Status.Conditions)
	})
}

// awaitLeft returns when an event says why a request is left; it is not decided.
func awaitLeft(t *testing.T, l *lab.Lab, name, why string) {
	t.Helper()
	succeeds(t, func(ctx context.Context) error {
		events, err := l.Client().CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=AgentRequestLeft,involvedObject.name=" + name})
		if err != nil {
			return err
		}
		if len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, why) {
			return fmt.Errorf("events %+v", events.Items)
		}
		return nil
	})
	r, err := l.Client().CertificatesV1().CertificateSigningRequests().Get(within(t, 10*time.Second), name, metav1.GetOptions{})
	if err != nil || len(r.Status.Conditions) > 0 {
		t.Errorf("%v, conditions %+v", err, r.Status.Conditions)
	}
}

// startApprover runs the approver for machines of a pattern, as the ServiceAccount of
// the documentation; of its Deployment it needs only that it is taken.
func startApprover(t *testing.T, l *lab.Lab, machines string) {
	t.Helper()
	manifest(t, l, "replicas: 1", "replicas: 0") // its pod would run on a node of another test
	dir := t.TempDir()
	token := kubectl(t, l, "create", "token", "berth-approver", "-n", "kube-system")
	ca, err := l.CA()
	check(t, err)
	for name, content := range map[string]string{"token": token, "ca.crt": string(ca), "kubeconfig": `apiVersion: v1
kind: Config
current-context: cluster
contexts: [{name: cluster, context: {cluster: cluster, user: pod}}]
clusters: [{name: cluster, cluster: {server: "` + l.APIServer() + `", certificate-authority: ca.crt}}]
users: [{name: pod, user: {tokenFile: token}}]
`} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	var log bytes.Buffer
	cmd := l.Command(context.Background(), l.Berth(), "approver", "--kubeconfig", filepath.Join(dir, "kubeconfig"), "--machine", machines)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		check(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("approver: %v\n%s", err, log.String())
		}
	})
}

// manifest gives the cluster what docs/approver.md has, with something in the place of
// each old word by turns, as strings.NewReplacer takes them.
func manifest(t *testing.T, l *lab.Lab, oldNew ...string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/approver.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("docs/approver.md has no manifest")
	}
	text = strings.NewReplacer(oldNew...).Replace(text)
	feed := func(args ...string) {
		cmd := l.KubectlCommand(context.Background(), append(args, "-f", "-")...)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "Warning") {
			t.Errorf("kubectl %q: %v\n%s", args, err, out)
		}
	}
	feed("apply")
	t.Cleanup(func() { feed("delete", "--wait=false") })
}
