package e2e

import (
	"regexp"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
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

// TestRequestIsApprovedLate follows the hint for a request that nobody has approved: the
// next run goes on with the same request, and the machine becomes a node. It runs alone:
// the rights that other tests give to agents have each such request approved.
func TestRequestIsApprovedLate(t *testing.T) {
	m := addBadMachine(t, sharedLab(t), "late")
	const held = "holdit.0123456789abcdef"
	check(t, m.lab.AddHeldToken(within(t, 10*time.Second), held))
	seconds := int32(38) // 10 s for the request
	c := badCase{
		name: "pending", code: 252, field: "bootstrapping_config.tls_bootstrapping_token",
		says: []string{"pending", "not approved since"}, hint: "kubectl certificate approve node-csr-",
		config: m.document(t, withToken(held), func(c *aksnodeconfigv1.Configuration) { c.CseTimeout = &seconds }),
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
