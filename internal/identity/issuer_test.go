package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

var _ converge.Issuer = (*Issuer)(nil)

// clock is a memory host with the real time, since the clusters of these tests
// issue certificates by it.
type clock struct {
	*memory.Host
	skew time.Duration
}

// Now implements host.Clock.
func (c clock) Now() time.Time { return time.Now().Add(c.skew) }

func TestIssue(t *testing.T) {
	c := newCluster(t)
	m := clock{memory.New(), 0}
	before := m.Tree("/")
	start := time.Now()
	cred, err := New(m).Issue(t.Context(), c.wants(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("took %s", time.Since(start))
	pair, err := tls.X509KeyPair(cred.Certificate, cred.Key)
	if err != nil {
		t.Fatal(err)
	}
	if pair.Leaf.Subject.CommonName != "system:node:n1" || !slices.Equal(pair.Leaf.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("subject %s", pair.Leaf.Subject)
	}
	if diff := cmp.Diff(before, m.Tree("/")); diff != "" {
		t.Errorf("touched the machine: %s", diff)
	}
	spec := c.csr.Spec
	if spec.SignerName != "kubernetes.io/kube-apiserver-client-kubelet" || !slices.Equal(spec.Usages, []certificates.KeyUsage{"digital signature", "client auth"}) {
		t.Errorf("spec %+v", spec)
	}
}

func TestIssueWaitsForApproval(t *testing.T) {
	c := newCluster(t)
	c.delay = 200 * time.Millisecond
	c.decide = func(r *certificates.CertificateSigningRequest) {
		approve(r)
		time.AfterFunc(50*time.Millisecond, func() { c.update(c.sign) })
	}
	if _, err := New(clock{memory.New(), 0}).Issue(t.Context(), c.wants(time.Minute)); err != nil {
		t.Error(err)
	}
}

func TestIssueFindsARequestWhoseAnswerWasLost(t *testing.T) {
	c := newCluster(t)
	c.loseOne = true
	if _, err := New(clock{memory.New(), 0}).Issue(t.Context(), c.wants(time.Minute)); err != nil {
		t.Error(err)
	}
	if c.posts != 2 {
		t.Errorf("%d requests were sent", c.posts)
	}
}

// budgets are for what is known only at their end: a busy machine needs more than the
// first of them to get as far.
var budgets = []time.Duration{1500 * time.Millisecond, 20 * time.Second}

func TestIssueSaysWhyNot(t *testing.T) {
	refuse := func(condition certificates.RequestConditionType) func(*cluster) {
		return func(c *cluster) {
			c.decide = func(r *certificates.CertificateSigningRequest) {
				r.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: condition, Status: core.ConditionTrue, Reason: "Because", Message: "not you"}}
			}
		}
	}
	undecided := func(*certificates.CertificateSigningRequest) {}
	for _, tc := range []struct {
		name    string
		arrange func(*cluster)
		want    func(*desired.ClientCertificate)
		reason  Reason
		text    string
	}{
		{"no token", nil, func(d *desired.ClientCertificate) { d.Token = "" }, ReasonNoToken, "no token"},
		{"unknown token", func(c *cluster) { c.token = "other" }, nil, ReasonUnauthorized, ""},
		{"forbidden", func(c *cluster) { c.refusal = 403 }, nil, ReasonForbidden, ""},
		{"denied", refuse(certificates.CertificateDenied), nil, ReasonDenied, "not you"},
		{"failed", refuse(certificates.CertificateFailed), nil, ReasonFailed, "not you"},
		{"pending", func(c *cluster) { c.decide = undecided }, nil, ReasonPending, "not approved since"},
		{"unsigned", func(c *cluster) { c.decide = approve }, nil, ReasonUnsigned, ""},
		{"other CA", nil, func(d *desired.ClientCertificate) {
			certificate, _, _ := SelfSigned([]string{"ca"}, time.Now())
			d.CA = string(certificate)
		}, ReasonTLS, "unknown authority"},
		{"no CA", nil, func(d *desired.ClientCertificate) { d.CA = "text" }, ReasonTLS, "no certificate"},
		{"gone", func(c *cluster) { c.server.Close() }, nil, ReasonUnreachable, "refused"},
		{"busy", func(c *cluster) { c.refusal = 503 }, nil, ReasonUnreachable, ""},
		{"other subject", func(c *cluster) {
			c.decide = func(r *certificates.CertificateSigningRequest) {
				block, _ := pem.Decode(r.Spec.Request)
				csr, _ := x509.ParseCertificateRequest(block.Bytes)
				approve(r)
				r.Status.Certificate = c.issue(pkix.Name{CommonName: "system:node:n2"}, csr.PublicKey.(*ecdsa.PublicKey), time.Hour)
			}
		}, nil, ReasonUnusable, "system:node:n2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var e *Error
			var ok bool
			var err error
			for _, timeout := range budgets {
				c := newCluster(t)
				if tc.arrange != nil {
					tc.arrange(c)
				}
				d := c.wants(timeout)
				if tc.want != nil {
					tc.want(d)
				}
				_, err = New(clock{memory.New(), 0}).Issue(t.Context(), d)
				if e, ok = errors.AsType[*Error](err); ok && e.Reason == tc.reason && strings.Contains(e.Error(), tc.text) {
					break
				}
			}
			if !ok || e.Reason != tc.reason || !strings.Contains(e.Error(), tc.text) || e.Remedy == "" {
				t.Fatalf("got %#v: %v", err, err)
			}
			if strings.Contains(e.Error()+e.Remedy, testToken) || strings.Contains(e.Error()+e.Remedy, "0123456789abcdef") {
				t.Errorf("shows the token: %s; %s", e.Error(), e.Remedy)
			}
			if late := tc.reason == ReasonPending; late != strings.HasPrefix(e.Remedy, "kubectl certificate approve node-csr-") {
				t.Errorf("hint %q", e.Remedy)
			}
		})
	}
}

func TestIssueOnAClockThatIsBehind(t *testing.T) {
	c := newCluster(t)
	_, err := New(clock{memory.New(), -24 * time.Hour}).Issue(t.Context(), c.wants(time.Minute))
	if ReasonOf(err) != ReasonUnusable || !strings.Contains(err.Error(), "the clock says") {
		t.Errorf("got %v", err)
	}
}

func TestIssueEndsWithItsContext(t *testing.T) {
	c := newCluster(t)
	c.decide = func(*certificates.CertificateSigningRequest) {}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := New(clock{memory.New(), 0}).Issue(ctx, c.wants(time.Minute)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// timeUp is a context whose time is over when the test says so.
type timeUp struct {
	context.Context
	over chan struct{}
}

// Done implements context.Context.
func (c timeUp) Done() <-chan struct{} { return c.over }

// Err implements context.Context.
func (c timeUp) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// untilKept is a context whose time is over when the key of a cluster's request is
// kept on the machine.
func untilKept(t *testing.T, m clock, c *cluster) context.Context {
	ctx := timeUp{t.Context(), make(chan struct{})}
	go func() {
		defer close(ctx.over)
		for t.Context().Err() == nil {
			if _, err := m.Lstat(pendingPath(c.wants(0))); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return ctx
}

// TestIssueTellsThatItWaits: once, with what would end the wait, also where no watch
// stands; then it goes on.
func TestIssueTellsThatItWaits(t *testing.T) {
	for name, deaf := range map[string]bool{"watch": false, "no watch": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.deaf, c.decide = deaf, func(*certificates.CertificateSigningRequest) {}
			var told []error
			i := New(clock{memory.New(), 0}).Telling(func(err error) {
				told = append(told, err)
				c.update(c.sign)
			})
			if _, err := i.Issue(t.Context(), c.wants(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if len(told) != 1 || ReasonOf(told[0]) != ReasonPending {
				t.Fatalf("told %v", told)
			}
			if e, _ := errors.AsType[*Error](told[0]); e.Remedy != "kubectl certificate approve "+c.csr.Name {
				t.Errorf("remedy %q", e.Remedy)
			}
		})
	}
}

func TestIssueGoesOnWithTheRequestThatWaits(t *testing.T) {
	c := newCluster(t)
	c.decide = func(*certificates.CertificateSigningRequest) {}
	m := clock{memory.New(), 0}
	before := m.Tree("/")
	_, err := New(m).Issue(untilKept(t, m, c), c.wants(time.Minute))
	first := c.csr.Name
	if kept, lost := m.Lstat(pendingPath(c.wants(0))); ReasonOf(err) != ReasonPending || lost != nil || kept.Mode != 0o600 {
		t.Fatalf("got %v, kept %+v, %v", err, kept, lost)
	}
	c.update(c.sign)
	if _, err := New(m).Issue(t.Context(), c.wants(time.Minute)); err != nil || c.csr.Name != first {
		t.Errorf("got %v, request %s after %s", err, c.csr.Name, first)
	}
	left := m.Tree("/")
	delete(left, "/var/lib/berth")
	delete(left, "/var/lib/berth/identity")
	if diff := cmp.Diff(before, left); diff != "" {
		t.Errorf("left behind: %s", diff)
	}
}

// TestIssueSendsADeletedRequestAgain: somebody tidied up while it waited.
func TestIssueSendsADeletedRequestAgain(t *testing.T) {
	c := newCluster(t)
	c.delay = 200 * time.Millisecond
	c.decide = func(*certificates.CertificateSigningRequest) {
		c.decide = c.sign
		go c.remove()
	}
	if _, err := New(clock{memory.New(), 0}).Issue(t.Context(), c.wants(time.Minute)); err != nil {
		t.Error(err)
	}
	if c.posts != 2 {
		t.Errorf("%d requests were sent", c.posts)
	}
}

// TestIssueKeepsTheKeyWithoutAWatch: a proxy that lets no watch through does not
// cost the key of a request that waits for a person.
func TestIssueKeepsTheKeyWithoutAWatch(t *testing.T) {
	c := newCluster(t)
	c.deaf, c.decide = true, func(*certificates.CertificateSigningRequest) {}
	m := clock{memory.New(), 0}
	_, err := New(m).Issue(untilKept(t, m, c), c.wants(time.Minute))
	if _, lost := m.Lstat(pendingPath(c.wants(0))); ReasonOf(err) != ReasonPending || lost != nil {
		t.Errorf("got %v, %v", err, lost)
	}
}

func TestLayerOfTheCauseIsKept(t *testing.T) {
	c := newCluster(t)
	c.server.Close()
	var err error
	for _, timeout := range budgets {
		_, err = New(clock{memory.New(), 0}).Issue(t.Context(), c.wants(timeout))
		if apiserver.LayerOf(err) == apiserver.LayerTCP {
			return
		}
	}
	t.Errorf("got %v", err)
}

// A token that ends while a request waits for a person is told as that: to approve the request
// would help nobody.
func TestIssueWithATokenThatEnds(t *testing.T) {
	c := newCluster(t)
	c.deaf = true
	c.decide = func(*certificates.CertificateSigningRequest) {}
	time.AfterFunc(500*time.Millisecond, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.token = "over"
	})
	_, err := New(clock{memory.New(), 0}).Issue(t.Context(), c.wants(25*time.Second))
	if e, ok := errors.AsType[*Error](err); !ok || e.Reason != ReasonUnauthorized {
		t.Error(err)
	}
}
