package setup

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"os/exec"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/berth-dev/berth/lab"
)

// ApplyRBAC gives the cluster what berth rbac prints for some agents, until the test
// ends.
func ApplyRBAC(t *testing.T, l *lab.Lab, args ...string) {
	t.Helper()
	text, err := exec.Command(l.Berth(), append([]string{"rbac"}, args...)...).Output()
	if err != nil {
		t.Fatal(err, string(text))
	}
	feed := func(verb string) {
		cmd := l.KubectlCommand(context.Background(), verb, "-f", "-")
		cmd.Stdin = bytes.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "Warning") {
			t.Errorf("kubectl %s: %v\n%s", verb, err, out)
		}
	}
	feed("apply")
	t.Cleanup(func() { feed("delete") })
}

// ApproveAgents approves what agents ask for, until the test ends.
func ApproveAgents(t *testing.T, l *lab.Lab) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	csrs := l.Client().CertificatesV1().CertificateSigningRequests()
	w, err := csrs.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientSignerName})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for e := range w.ResultChan() {
			csr, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
			if !ok || e.Type == watch.Deleted || len(csr.Status.Conditions) > 0 || !strings.HasPrefix(csr.Name, "node-agent-csr-") || isLeft(csr) {
				continue
			}
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
			_, _ = csrs.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
		}
	}()
}

// left are users whose requests nobody approves.
var left sync.Map

// LeaveAgent has nobody approve what a user asks for, until the end.
func LeaveAgent(user string) (end func()) {
	left.Store(user, true)
	return func() { left.Delete(user) }
}

func isLeft(csr *certificatesv1.CertificateSigningRequest) bool {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return false
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return false
	}
	_, is := left.Load(request.Subject.CommonName)
	return is
}
