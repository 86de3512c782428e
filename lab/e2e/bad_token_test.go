package e2e

import (
	"regexp"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

func withToken(token string) func(*aksnodeconfigv1.Configuration) {
	return func(c *aksnodeconfigv1.Configuration) { c.BootstrappingConfig.TlsBootstrappingToken = &token }
}

// badTokens get no client certificate.
func badTokens(t *testing.T, m *badMachine) {
	const expired, unknown, field = "expire.0123456789abcdef", "nobody.0123456789abcdef", "bootstrapping_config.tls_bootstrapping_token"
	if err := m.lab.AddToken(within(t, 10*time.Second), expired, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	m.each(t, []badCase{
		{name: "expired", code: 252, field: field, says: []string{"unauthorized"}, hint: "token", config: m.document(t, withToken(expired))},
		{name: "unknown", code: 252, field: field, says: []string{"unauthorized"}, hint: "token", config: m.document(t, withToken(unknown))},
	})
	for _, token := range []string{expired, unknown} {
		if r := m.exec(t, "grep", "-r", token, "/var/log", "/var/lib/berth", "/run"); r.Code == 0 {
			t.Errorf("the token is told: %s", r.Stdout)
		}
	}
}

// approvedLate follows the hint for a request that nobody has approved: the next
// run goes on with the same request, and the machine becomes a node.
func approvedLate(t *testing.T, m *badMachine) {
	stopApproving(t, m.lab)
	seconds := int32(38) // 5 s for the request
	c := badCase{
		name: "pending", code: 252, field: "bootstrapping_config.tls_bootstrapping_token",
		says: []string{"pending", "not approved since"}, hint: "kubectl certificate approve node-csr-",
		config: m.document(t, func(c *aksnodeconfigv1.Configuration) { c.CseTimeout = &seconds }),
	}
	m.refuse(t, c)
	name := regexp.MustCompile(`node-csr-\S+`).FindString(m.outcome(t, "").Berth.Hint)
	kubectl(t, m.lab, "certificate", "approve", name)
	if r := m.provision(t, badCase{name: "approved"}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	m.wait(t, 0)
	if _, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
	planIsEmpty(t, m.lab, m.node)
}

// stopApproving takes the right to have requests approved at once from all who
// come with a token.
func stopApproving(t *testing.T, l *lab.Lab) {
	t.Helper()
	bindings := l.Client().RbacV1().ClusterRoleBindings()
	b, err := bindings.Get(within(t, 10*time.Second), "lab:approve", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := bindings.Delete(within(t, 10*time.Second), b.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.ResourceVersion, b.UID = "", ""
		if _, err := bindings.Create(within(t, 10*time.Second), b, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		eventually(t, "requests are approved again", 10*time.Second, func() bool { return approves(t, l) })
	})
	eventually(t, "no request is approved", 10*time.Second, func() bool { return !approves(t, l) })
}

// approves says whether the controller would approve a request at once.
func approves(t *testing.T, l *lab.Lab) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: "nodeclient", Verb: "create",
		},
	}}
	r, err := l.Client().AuthorizationV1().SubjectAccessReviews().Create(within(t, 10*time.Second), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Allowed
}
