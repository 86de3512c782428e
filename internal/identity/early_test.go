package identity

import (
	"context"
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// issued asks for a certificate, and says how many requests were sent since the last time.
func (c *cluster) issued(t *testing.T, i *Issuer, wanted *desired.ClientCertificate) int {
	t.Helper()
	cred, err := i.Issue(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(cred.Certificate, cred.Key); err != nil {
		t.Error(err)
	}
	return c.sent()
}

func (c *cluster) sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.posts
	c.posts = 0
	return n
}

// A certificate that was asked for early is that of the first who asks for the same.
func TestEarlyIssue(t *testing.T) {
	c, m, e := newCluster(t), clock{memory.New(), 0}, &EarlyIssue{}
	i := New(m).After(e)
	before := len(m.Tree("/"))
	begin := func() {
		t.Helper()
		e.Begin(t.Context(), New(m), c.wants(time.Minute))
		<-e.begun.done
		if n := c.sent(); n != 1 {
			t.Fatalf("%d requests were sent early", n)
		}
	}
	begin()
	if n := c.issued(t, i, c.wants(time.Minute)); n != 0 {
		t.Errorf("%d more requests", n)
	}
	if n := c.issued(t, i, c.wants(time.Minute)); n != 1 {
		t.Errorf("%d requests for another one", n)
	}
	begin()
	other := c.wants(time.Minute)
	other.NodeName = "n2"
	if n := c.issued(t, i, other); n != 1 {
		t.Errorf("%d requests for another node", n)
	}
	if after := len(m.Tree("/")); after != before {
		t.Errorf("%d files on the machine, were %d", after, before)
	}
}

// A request that nobody decided on in time is gone on with, and not sent as another one.
func TestEarlyIssueThatWaits(t *testing.T) {
	c, m, e := newCluster(t), clock{memory.New(), 0}, &EarlyIssue{}
	c.decide = func(*certificates.CertificateSigningRequest) {}
	ctx, cancel := context.WithCancel(t.Context())
	e.Begin(ctx, New(m), c.wants(time.Minute))
	for c.sent() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	<-e.begun.done
	name := c.csr.Name
	c.update(c.sign)
	if c.issued(t, New(m).After(e), c.wants(time.Minute)); c.csr.Name != name {
		t.Errorf("the request is %s, was %s", c.csr.Name, name)
	}
}

// One that was refused keeps nobody from asking.
func TestEarlyIssueThatIsRefused(t *testing.T) {
	c, m, e := newCluster(t), clock{memory.New(), 0}, &EarlyIssue{}
	c.refusal = http.StatusForbidden
	e.Begin(t.Context(), New(m), c.wants(time.Minute))
	<-e.begun.done
	if n := c.sent(); n != 1 {
		t.Errorf("%d requests were sent early", n)
	}
	c.refusal = 0
	if n := c.issued(t, New(m).After(e), c.wants(time.Minute)); n != 1 {
		t.Errorf("%d requests were sent", n)
	}
}

// The token of an identity of a cloud is asked for once, when it is needed.
func TestEarlyIssueAsksNoCloud(t *testing.T) {
	c, e := newCluster(t), &EarlyIssue{}
	wanted := c.wants(time.Minute)
	wanted.Token, wanted.Azure = "", &desired.AzureIdentity{}
	e.Begin(t.Context(), New(clock{memory.New(), 0}), wanted)
	if e.begun != nil {
		t.Error("it asks")
	}
}

// Who is told to stop does not wait for what began early.
func TestEarlyIssueKeepsNobody(t *testing.T) {
	c := newCluster(t)
	wanted := c.wants(time.Minute)
	e := &EarlyIssue{begun: &begunIssue{c: wanted, done: make(chan struct{})}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(clock{memory.New(), 0}).After(e).Issue(ctx, wanted); err == nil {
		t.Error("issued")
	}
}
