package identity

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host/memory"
)

func agentOf(machine string) Agent { return Agent{machine, AgentsGroup} }

func TestIssueForAgent(t *testing.T) {
	c := newCluster(t)
	m := clock{memory.New(), 0}
	cred, err := New(m).IssueForAgent(t.Context(), agentOf("m1"), apiserver.Access{Server: c.server.URL, CA: []byte(c.ca), Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	if p := AgentProblem(cred, agentOf("m1"), time.Now()); p != "" {
		t.Error(p)
	}
	spec := c.csr.Spec
	usages := []certificates.KeyUsage{"digital signature", "key encipherment", "client auth"}
	if spec.SignerName != "kubernetes.io/kube-apiserver-client" || !slices.Equal(spec.Usages, usages) || *spec.ExpirationSeconds != 2592000 {
		t.Errorf("spec %+v", spec)
	}
	for name, problem := range map[string]string{
		"another machine": AgentProblem(cred, agentOf("m2"), time.Now()),
		"another group":   AgentProblem(cred, Agent{"m1", "example.com:pool-a"}, time.Now()),
		"too early":       AgentProblem(cred, agentOf("m1"), time.Now().Add(-24*time.Hour)),
		"too late":        AgentProblem(cred, agentOf("m1"), time.Now().Add(24*time.Hour)),
		"nothing":         AgentProblem(converge.Credential{}, agentOf("m1"), time.Now()),
	} {
		if problem == "" {
			t.Errorf("%s serves", name)
		}
	}
	from, until := Validity(cred.Certificate)
	if from.IsZero() || !from.Before(until) {
		t.Error(from, until)
	}
	if from, until := Validity([]byte("x")); !from.IsZero() || !until.IsZero() {
		t.Error("garbage is valid")
	}
}

func TestAgentWithAnExpiredTokenIsToldWhereToPutAnother(t *testing.T) {
	c := newCluster(t)
	c.token = "another"
	_, err := New(clock{memory.New(), 0}).IssueForAgent(t.Context(), agentOf("m1"), apiserver.Access{Server: c.server.URL, CA: []byte(c.ca), Token: testToken})
	if e, ok := errors.AsType[*Error](err); !ok || e.Reason != ReasonUnauthorized || !strings.HasSuffix(e.Remedy, "put it in the place of this one on the machine") {
		t.Fatalf("%+v", err)
	}
}

func TestAgentWithoutATokenIsToldWhatToDo(t *testing.T) {
	c := newCluster(t)
	c.token = "another"
	_, err := New(clock{memory.New(), 0}).IssueForAgent(t.Context(), agentOf("m1"), apiserver.Access{Server: c.server.URL, CA: []byte(c.ca)})
	if ReasonOf(err) != ReasonUnauthorized {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*Error](err); !ok || e.Remedy != "the certificate in force is not known to this cluster: put a bootstrap token on the machine" {
		t.Error(err)
	}
}
