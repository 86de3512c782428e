package approver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-dev/berth/internal/apiserver"
)

// cluster is the part of an API server that the approver asks.
type cluster struct {
	mu       sync.Mutex
	requests map[string]*certificates.CertificateSigningRequest
	nodes    map[string]bool
	events   map[string]string
	failures int // of the next calls
	approved []string
	looked   int
	ghost    *certificates.CertificateSigningRequest // is told of, and gone
}

func newCluster(requests ...*certificates.CertificateSigningRequest) *cluster {
	c := &cluster{requests: map[string]*certificates.CertificateSigningRequest{}, nodes: map[string]bool{}, events: map[string]string{}}
	for _, r := range requests {
		c.requests[r.Name] = r
	}
	return c
}

func (c *cluster) fails() error {
	if c.failures > 0 {
		c.failures--
		return errors.New("the server is away")
	}
	return nil
}

func missing(name string) error { return apierrors.NewNotFound(schema.GroupResource{}, name) }

// FollowRequests implements Calls.
func (c *cluster) FollowRequests(ctx context.Context, _ string, f apiserver.Follower[certificates.CertificateSigningRequest]) {
	c.mu.Lock()
	for _, r := range c.requests {
		f.See(r)
	}
	if c.ghost != nil {
		f.See(c.ghost)
	}
	c.mu.Unlock()
	<-ctx.Done()
}

// GetRequest implements Calls.
func (c *cluster) GetRequest(_ context.Context, name string) (*certificates.CertificateSigningRequest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked++
	if err := c.fails(); err != nil {
		return nil, err
	}
	if c.requests[name] == nil {
		return nil, missing(name)
	}
	return c.requests[name].DeepCopy(), nil
}

// ApproveRequest implements Calls.
func (c *cluster) ApproveRequest(_ context.Context, r *certificates.CertificateSigningRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fails(); err != nil {
		return err
	}
	c.requests[r.Name] = r
	c.approved = append(c.approved, r.Name+": "+r.Status.Conditions[0].Message)
	return nil
}

// GetNode implements Calls.
func (c *cluster) GetNode(_ context.Context, name string) (*core.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.nodes[name] {
		return nil, missing(name)
	}
	return &core.Node{}, c.fails()
}

// CreateEvent implements Calls.
func (c *cluster) CreateEvent(_ context.Context, e *core.Event) (*core.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events[e.Name] != "" {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{}, e.Name)
	}
	c.events[e.Name] = e.Message
	return e, c.fails()
}

// serve runs an approver in a bubble of time; each step is followed by a minute of
// it. It returns the log.
func serve(t *testing.T, c Calls, steps ...func()) string {
	t.Helper()
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			(&Approver{Rule: rule, Calls: c, Log: slog.New(slog.NewTextHandler(&log, nil))}).Run(ctx)
		}()
		for _, step := range append([]func(){func() {}}, steps...) {
			step()
			time.Sleep(61 * time.Second)
			synctest.Wait()
		}
		cancel()
		<-done
	})
	return log.String()
}

func TestApprovesAMachineThatJoins(t *testing.T) {
	c := newCluster(newForm(t, "m1").request(t))
	log := serve(t, c)
	if want := []string{"csr-m1: machine m1: it joins with a bootstrap token"}; len(c.approved) != 1 || c.approved[0] != want[0] {
		t.Errorf("approved %q", c.approved)
	}
	if condition := c.requests["csr-m1"].Status.Conditions[0]; condition.Type != "Approved" || condition.Status != "True" || condition.Reason != "AgentRequestApproved" {
		t.Errorf("%+v", condition)
	}
	if !strings.Contains(log, "requester=system:bootstrap:abcdef") || len(c.events) > 0 {
		t.Error(log, c.events)
	}
}

func TestApprovesARenewalThoughThereIsANode(t *testing.T) {
	f := newForm(t, "m1")
	by(userPrefix+"m1", "agents")(f)
	c := newCluster(f.request(t))
	c.nodes["m1"] = true
	serve(t, c)
	if len(c.approved) != 1 || !strings.Contains(c.approved[0], "renews") {
		t.Errorf("approved %q", c.approved)
	}
}

// A token serves while there is no Node; where that goes, the request is good again.
func TestATokenDoesNotServeAMachineThatHasJoined(t *testing.T) {
	c := newCluster(newForm(t, "m1").request(t))
	c.nodes["m1"] = true
	log := serve(t, c, func() {}, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.approved) > 0 || len(c.events) != 1 {
			t.Errorf("approved %q, events %q", c.approved, c.events)
		}
		delete(c.nodes, "m1")
	})
	if len(c.approved) != 1 {
		t.Errorf("approved %q", c.approved)
	}
	if strings.Count(log, "left a certificate request") != 1 || !strings.Contains(log, "machine m1 has joined") {
		t.Error(log)
	}
}

func TestLeavesWhatIsNotAsItShouldBe(t *testing.T) {
	f := newForm(t, "m1")
	f.Subject.Organization = []string{"system:masters"}
	alien := newForm(t, "jane")
	alien.Subject = f.Subject
	alien.Subject.CommonName = "jane"
	c := newCluster(f.request(t), alien.request(t))
	log := serve(t, c)
	if len(c.approved) > 0 || len(c.events) != 1 || strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "system:masters") {
		t.Errorf("approved %q, events %q, log %s", c.approved, c.events, log)
	}
	if c.looked != 1 {
		t.Errorf("%d looks: the other's request is no business of the approver's", c.looked)
	}
}

func TestTriesAgainWhereTheServerFails(t *testing.T) {
	c := newCluster(newForm(t, "m1").request(t))
	c.failures = 3
	serve(t, c)
	if len(c.approved) != 1 || c.failures != 0 {
		t.Errorf("approved %q, %d failures left", c.approved, c.failures)
	}
}

func TestARequestThatIsGoneIsForgotten(t *testing.T) {
	c := newCluster()
	c.ghost = newForm(t, "m1").request(t)
	log := serve(t, c, func() {})
	if c.looked != 1 || log != "" {
		t.Errorf("%d looks, log %s", c.looked, log)
	}
}

func TestLongNamesFitIntoAnEvent(t *testing.T) {
	f := newForm(t, "m1")
	f.Subject.Organization = []string{strings.Repeat("ä", 2000)}
	c := newCluster(f.request(t))
	serve(t, c)
	for _, message := range c.events {
		if len(message) > 1024 || !strings.HasSuffix(message, "...") || strings.ContainsRune(message, '�') {
			t.Errorf("%d bytes: %q", len(message), message)
		}
	}
	if len(c.events) != 1 {
		t.Error(c.events)
	}
}

// strict checks an event's name as the API server does.
type strict struct{ *cluster }

func (s strict) CreateEvent(ctx context.Context, e *core.Event) (*core.Event, error) {
	if len(validation.IsDNS1123Subdomain(e.Name)) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, e.Name, nil)
	}
	return s.cluster.CreateEvent(ctx, e)
}

// The API server takes every name for a request, and not every one for an event.
func TestARequestOfAnyNameIsLeftOnce(t *testing.T) {
	f := newForm(t, "m1")
	f.Subject.Organization = []string{"system:masters"}
	f.csr.Name = "Agent:m1"
	c := newCluster(f.request(t))
	log := serve(t, strict{c}, func() { time.Sleep(time.Hour) })
	if c.looked != 1 || len(c.events) != 1 {
		t.Errorf("%d looks, %d events, log %s", c.looked, len(c.events), log)
	}
}
