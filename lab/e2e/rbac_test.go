package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-dev/berth/lab"
)

const (
	agentPrefix = "gardener.cloud:node-agent:machine:"
	agentsGroup = "gardener.cloud:node-agents"
)

// TestRBAC asks a real API server for everything that an agent may do, and for what
// it may not, with certificates of two machines, a stranger's, and a token.
func TestRBAC(t *testing.T) {
	l := sharedLab(t)
	rbacObjects(t, l)
	applyRBAC(t, l, "--secret", "rbac-pool", "--token-secret", "rbac-token")
	a := clientOf(t, l, agentPrefix+"rbac-a", agentsGroup)
	awaitRBAC(t, a)
	for _, c := range agentMay {
		if err := c.do(within(t, 10*time.Second), a); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, c := range agentMayNot {
		refusedRBAC(t, a, c)
	}
	t.Run("another name", func(t *testing.T) { anotherName(t, l) })
	t.Run("stranger", func(t *testing.T) { strangerIsRefused(t, l) })
	t.Run("token", func(t *testing.T) { tokenIsForRequests(t, l) })
}

// asked is one request to the API server.
type asked struct {
	name string
	do   func(context.Context, kubernetes.Interface) error
	// says is a part of the refusal; by default that of a missing right.
	says string
}

func refusedRBAC(t *testing.T, c kubernetes.Interface, a asked) {
	t.Helper()
	if a.says == "" {
		a.says = "cannot"
	}
	err := a.do(within(t, 10*time.Second), c)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.says) {
		t.Errorf("%s: %v", a.name, err)
	}
}

const (
	ownNode  = "writes the Node of its own machine only"
	ownLease = "writes its own Lease and those of its pool only"
	specSays = "does not change a Node's spec"
	labelSay = "of a Node's labels"
)

var agentMay = []asked{
	{name: "read its Secret", do: readSecret("rbac-pool")},
	{name: "watch its Secret", do: watchSecret("rbac-pool")},
	{name: "read its token", do: readSecret("rbac-token")},
	{name: "watch its Node", do: func(ctx context.Context, c kubernetes.Interface) error {
		w, err := c.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=rbac-a"})
		if err == nil {
			w.Stop()
		}
		return err
	}},
	{name: "annotate its Node", do: patchNode("rbac-a", `{"metadata":{"annotations":{"checksum/cloud-config-data":"x"}}}`)},
	{name: "label its Node", do: patchNode("rbac-a", `{"metadata":{"labels":{"worker.gardener.cloud/kubernetes-version":"1.36.3","node-role.kubernetes.io/worker":"","topology.kubernetes.io/zone":"z1"}}}`)},
	{name: "set a condition", do: patchStatus("rbac-a")},
	{name: "make its Lease", do: createLease("kube-system", "gardener-node-agent-rbac-a")},
	{name: "renew its Lease", do: renewLease("gardener-node-agent-rbac-a")},
	{name: "make its pool's Lease", do: createLease("kube-system", "rbac-pool")},
	{name: "take its pool's Lease", do: renewLease("rbac-pool")},
	{name: "make its pool's second Lease", do: createLease("kube-system", "rbac-pool-2")},
	{name: "post an event", do: createEvent("default", "rbac-a.1")},
	{name: "count an event", do: func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Events("default").Patch(ctx, "rbac-a.1", types.MergePatchType, []byte(`{"count":2}`), metav1.PatchOptions{})
		return err
	}},
	{name: "ask for a certificate", do: func(ctx context.Context, c kubernetes.Interface) error {
		_, _, err := requestCertificate(ctx, c, "rbac-may-", agentPrefix+"rbac-a", agentsGroup)
		return err
	}},
}

var agentMayNot = []asked{
	{name: "read another pool's Secret", do: readSecret("rbac-other")},
	{name: "watch another pool's Secret", do: watchSecret("rbac-other")},
	{name: "list Secrets", do: func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
		return err
	}},
	{name: "change its Secret", do: func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Secrets("kube-system").Patch(ctx, "rbac-pool", types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
		return err
	}},
	{name: "annotate another Node", says: ownNode, do: patchNode("rbac-b", `{"metadata":{"annotations":{"checksum/cloud-config-data":"x"}}}`)},
	{name: "set another's condition", says: ownNode, do: patchStatus("rbac-b")},
	{name: "taint its Node", says: specSays, do: patchNode("rbac-a", `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`)},
	{name: "cordon its Node", says: specSays, do: patchNode("rbac-a", `{"spec":{"unschedulable":true}}`)},
	{name: "make itself a control plane", says: labelSay, do: patchNode("rbac-a", `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)},
	{name: "change a label of others", says: labelSay, do: patchNode("rbac-a", `{"metadata":{"labels":{"theirs":"2"}}}`)},
	{name: "remove a label of others", says: labelSay, do: patchNode("rbac-a", `{"metadata":{"labels":{"theirs":null}}}`)},
	{name: "label by way of the status", says: labelSay, do: func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, "rbac-a", types.MergePatchType, []byte(`{"metadata":{"labels":{"theirs":"2"}}}`), metav1.PatchOptions{}, "status")
		return err
	}},
	{name: "delete its Node", do: func(ctx context.Context, c kubernetes.Interface) error {
		return c.CoreV1().Nodes().Delete(ctx, "rbac-a", metav1.DeleteOptions{})
	}},
	{name: "make a Node", do: func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rbac-c"}}, metav1.CreateOptions{})
		return err
	}},
	{name: "make another's Lease", says: ownLease, do: createLease("kube-system", "gardener-node-agent-rbac-c")},
	{name: "renew another's Lease", says: ownLease, do: renewLease("gardener-node-agent-rbac-b")},
	{name: "take another pool's Lease", says: ownLease, do: renewLease("rbac-other")},
	{name: "make a Lease nearly of its pool", says: ownLease, do: createLease("kube-system", "rbac-pool-2x")},
	{name: "make the scheduler's Lease", says: ownLease, do: createLease("kube-system", "kube-scheduler")},
	{name: "delete its Lease", do: func(ctx context.Context, c kubernetes.Interface) error {
		return c.CoordinationV1().Leases("kube-system").Delete(ctx, "gardener-node-agent-rbac-a", metav1.DeleteOptions{})
	}},
	{name: "make a Lease elsewhere", do: createLease("kube-node-lease", "gardener-node-agent-rbac-a")},
	{name: "post an event elsewhere", do: createEvent("kube-system", "rbac-a.1")},
	{name: "list pods", do: func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		return err
	}},
	{name: "approve a request", do: func(ctx context.Context, c kubernetes.Interface) error {
		csr, _, err := requestCertificate(ctx, c, "rbac-approve-", agentPrefix+"rbac-b", agentsGroup)
		if err != nil {
			return err
		}
		return approve(ctx, c, csr)
	}},
}

// anotherName: a Node that does not have its machine's name is granted by name.
func anotherName(t *testing.T, l *lab.Lab) {
	c := clientOf(t, l, agentPrefix+"rbac-machine", agentsGroup)
	node, lease := patchNode("rbac-odd", `{"metadata":{"annotations":{"x":"y"}}}`), createLease("kube-system", "gardener-node-agent-rbac-odd")
	refusedRBAC(t, c, asked{"before", node, ownNode})
	refusedRBAC(t, c, asked{"before", lease, ownLease})
	kubectl(t, l, "create", "clusterrole", "rbac-odd", "--verb=own", "--resource=nodes", "--resource-name=rbac-odd")
	kubectl(t, l, "create", "clusterrolebinding", "rbac-odd", "--clusterrole=rbac-odd", "--user="+agentPrefix+"rbac-machine")
	t.Cleanup(func() { kubectl(t, l, "delete", "clusterrole,clusterrolebinding", "rbac-odd") })
	succeeds(t, func(ctx context.Context) error { return node(ctx, c) })
	if err := lease(within(t, 10*time.Second), c); err != nil {
		t.Error(err)
	}
	refusedRBAC(t, c, asked{"another Node", patchNode("rbac-b", `{"metadata":{"annotations":{"x":"y"}}}`), ownNode})
}

// strangerIsRefused: the group alone owns no Node.
func strangerIsRefused(t *testing.T, l *lab.Lab) {
	for _, name := range []string{"rbac-a", "system:node:rbac-a", agentPrefix} {
		c := clientOf(t, l, name, agentsGroup)
		refusedRBAC(t, c, asked{name, patchNode("rbac-a", `{"metadata":{"annotations":{"x":"y"}}}`), ownNode})
		refusedRBAC(t, c, asked{name, renewLease("gardener-node-agent-rbac-a"), ownLease})
	}
}

// tokenIsForRequests: a token asks for a certificate, and for nothing else.
func tokenIsForRequests(t *testing.T, l *lab.Lab) {
	cfg := rest.AnonymousClientConfig(l.RESTConfig())
	cfg.BearerToken = lab.Token
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	csr, _, err := requestCertificate(within(t, 10*time.Second), c, "rbac-token-", agentPrefix+"rbac-a", agentsGroup)
	if err != nil {
		t.Fatal(err)
	}
	refusedRBAC(t, c, asked{name: "approve", do: func(ctx context.Context, c kubernetes.Interface) error { return approve(ctx, c, csr) }})
	refusedRBAC(t, c, asked{name: "Secret", do: readSecret("rbac-pool")})
	refusedRBAC(t, c, asked{name: "Node", do: patchNode("rbac-a", `{"metadata":{"annotations":{"x":"y"}}}`)})
}

// rbacObjects are Secrets, Nodes and a Lease that the test asks for.
func rbacObjects(t *testing.T, l *lab.Lab) {
	t.Helper()
	ctx, core := within(t, 20*time.Second), l.Client().CoreV1()
	for _, name := range []string{"rbac-pool", "rbac-token", "rbac-other"} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": name}}
		_, err := core.Secrets("kube-system").Create(ctx, s, metav1.CreateOptions{})
		check(t, err)
		t.Cleanup(func() {
			check(t, core.Secrets("kube-system").Delete(context.Background(), name, metav1.DeleteOptions{}))
		})
	}
	for _, name := range []string{"rbac-a", "rbac-b", "rbac-odd"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"theirs": "1"}}}
		_, err := core.Nodes().Create(ctx, n, metav1.CreateOptions{})
		check(t, err)
		t.Cleanup(func() { check(t, core.Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})) })
	}
	for _, name := range []string{"gardener-node-agent-rbac-b", "rbac-other"} {
		check(t, createLease("kube-system", name)(ctx, l.Client()))
	}
	t.Cleanup(func() {
		for _, name := range []string{"rbac-pool", "rbac-pool-2", "rbac-other", "gardener-node-agent-rbac-a", "gardener-node-agent-rbac-b", "gardener-node-agent-rbac-odd"} {
			check(t, l.Client().CoordinationV1().Leases("kube-system").Delete(context.Background(), name, metav1.DeleteOptions{}))
		}
	})
}

// awaitRBAC returns when the API server goes by the policies and the roles.
func awaitRBAC(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	succeeds(t, func(ctx context.Context) error {
		err := patchNode("rbac-b", `{}`)(ctx, c)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), ownNode) {
			return errors.New("the policy of Nodes does not count yet")
		}
		if err := renewLease("gardener-node-agent-rbac-b")(ctx, c); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), ownLease) {
			return errors.New("the policy of Leases does not count yet")
		}
		return readSecret("rbac-pool")(ctx, c)
	})
}

// succeeds tries until it succeeds.
func succeeds(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx := within(t, time.Minute)
	var last error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = f(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(last)
	}
}

// clientOf is a client with a certificate of the cluster's CA.
func clientOf(t *testing.T, l *lab.Lab, name string, groups ...string) kubernetes.Interface {
	t.Helper()
	ctx := within(t, time.Minute)
	csr, key, err := requestCertificate(ctx, l.Client(), "rbac-", name, groups...)
	check(t, err)
	check(t, approve(ctx, l.Client(), csr))
	certificate := signed(t, l, csr.Name)
	cfg := rest.AnonymousClientConfig(l.RESTConfig())
	cfg.CertData, cfg.KeyData, cfg.QPS = certificate, key, -1
	c, err := kubernetes.NewForConfig(cfg)
	check(t, err)
	return c
}

func signed(t *testing.T, l *lab.Lab, name string) (certificate []byte) {
	t.Helper()
	succeeds(t, func(ctx context.Context) error {
		got, err := l.Client().CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(got.Status.Certificate) == 0 {
			err = errors.New(name + " is not signed")
		}
		if err == nil {
			certificate = got.Status.Certificate
		}
		return err
	})
	return certificate
}

func requestCertificate(ctx context.Context, c kubernetes.Interface, prefix, name string, groups ...string) (*certificatesv1.CertificateSigningRequest, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: groups}}, key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	csr, err := c.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment},
			ExpirationSeconds: new(int32(2592000)),
		},
	}, metav1.CreateOptions{})
	return csr, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), err
}

func approve(ctx context.Context, c kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) error {
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
	_, err := c.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	return err
}

func readSecret(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Secrets("kube-system").Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

func watchSecret(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		one := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
		list, err := c.CoreV1().Secrets("kube-system").List(ctx, one)
		if err != nil {
			return err
		}
		one.ResourceVersion = list.ResourceVersion
		w, err := c.CoreV1().Secrets("kube-system").Watch(ctx, one)
		if err == nil {
			w.Stop()
		}
		return err
	}
}

func patchNode(name, patch string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
}

func patchStatus(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"SystemdUnitsReady","status":"True"}]}}`), metav1.PatchOptions{}, "status")
		return err
	}
}

func createLease(namespace, name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
}

func renewLease(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		lease, err := c.CoordinationV1().Leases("kube-system").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity = new("rbac-a")
		_, err = c.CoordinationV1().Leases("kube-system").Update(ctx, lease, metav1.UpdateOptions{})
		return err
	}
}

func createEvent(namespace, name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Events(namespace).Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "rbac-a", Namespace: namespace}, Reason: "Test"}, metav1.CreateOptions{})
		return err
	}
}
