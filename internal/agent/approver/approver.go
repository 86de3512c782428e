package approver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/berth-dev/berth/internal/apiserver"
)

// Calls are the API server's.
type Calls interface {
	FollowRequests(ctx context.Context, signer string, f apiserver.Follower[certificates.CertificateSigningRequest])
	GetRequest(ctx context.Context, name string) (*certificates.CertificateSigningRequest, error)
	ApproveRequest(ctx context.Context, r *certificates.CertificateSigningRequest) error
	GetNode(ctx context.Context, name string) (*core.Node, error)
	CreateEvent(ctx context.Context, e *core.Event) (*core.Event, error)
}

// Approver applies a rule. All fields are required.
type Approver struct {
	Rule  Rule
	Calls Calls
	Log   *slog.Logger
}

const (
	reasonApproved = "AgentRequestApproved"
	reasonLeft     = "AgentRequestLeft"

	// again is when a request is looked at anew that waits for a Node to go.
	again = time.Minute
)

type queue = workqueue.TypedRateLimitingInterface[string]

// Run looks at requests until ctx ends. One that can't be decided because the API
// server is away is tried again.
func (a *Approver) Run(ctx context.Context) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, time.Minute))
	var worker sync.WaitGroup
	worker.Go(func() { a.work(ctx, q) })
	a.Calls.FollowRequests(ctx, signer, apiserver.Follower[certificates.CertificateSigningRequest]{
		See: func(r *certificates.CertificateSigningRequest) {
			if r != nil && a.Rule.Decide(r).Disposition != NotOurs {
				q.Add(r.Name)
			}
		},
		Fail: func(err error) { a.Log.Warn("follow certificate requests", "error", err) },
	})
	q.ShutDown() // else Get would wait for ever
	worker.Wait()
}

func (a *Approver) work(ctx context.Context, q queue) {
	for {
		name, end := q.Get()
		if end || ctx.Err() != nil {
			return
		}
		pause, err := a.decide(ctx, name)
		switch {
		case err != nil:
			a.Log.Warn("decide about a certificate request", "request", name, "error", err)
			q.AddRateLimited(name)
		case pause > 0:
			q.AddAfter(name, pause)
		default:
			q.Forget(name)
		}
		q.Done(name)
	}
}

// decide goes by the request as it is now, and says when to look again.
func (a *Approver) decide(ctx context.Context, name string) (time.Duration, error) {
	r, err := a.Calls.GetRequest(ctx, name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	d := a.Rule.Decide(r)
	switch d.Disposition {
	case Leave:
		return 0, a.leave(ctx, r, d.Reason)
	case ApproveNew:
		if _, err := a.Calls.GetNode(ctx, d.Machine); err == nil {
			return again, a.leave(ctx, r, "machine "+d.Machine+" has joined: a bootstrap token serves only while there is no Node "+d.Machine)
		} else if !apierrors.IsNotFound(err) {
			return 0, err
		}
		return 0, a.approve(ctx, r, d.Machine, "it joins with a bootstrap token")
	case Approve:
		return 0, a.approve(ctx, r, d.Machine, "its agent renews its certificate")
	}
	return 0, nil
}

func (a *Approver) approve(ctx context.Context, r *certificates.CertificateSigningRequest, machine, why string) error {
	now := meta.Now()
	r.Status.Conditions = append(r.Status.Conditions, certificates.CertificateSigningRequestCondition{
		Type: certificates.CertificateApproved, Status: core.ConditionTrue, Reason: reasonApproved,
		Message: "machine " + machine + ": " + why, LastUpdateTime: now, LastTransitionTime: now,
	})
	if err := a.Calls.ApproveRequest(ctx, r); err != nil {
		return err
	}
	a.Log.Info("approved a certificate request", "request", r.Name, "machine", machine, "requester", r.Spec.Username, "reason", why)
	return nil
}

// leave says why, once for each request and reason: the event has a name of both.
func (a *Approver) leave(ctx context.Context, r *certificates.CertificateSigningRequest, why string) error {
	_, err := a.Calls.CreateEvent(ctx, event(r, why))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	a.Log.Warn("left a certificate request", "request", r.Name, "requester", r.Spec.Username, "reason", why)
	return err
}

func event(r *certificates.CertificateSigningRequest, why string) *core.Event {
	now := meta.Now()
	sum := sha256.Sum256([]byte(string(r.UID) + why))
	return &core.Event{
		ObjectMeta:     meta.ObjectMeta{Namespace: meta.NamespaceDefault, Name: fmt.Sprintf("csr.%x", sum[:16])},
		InvolvedObject: core.ObjectReference{Kind: "CertificateSigningRequest", APIVersion: "certificates.k8s.io/v1", Name: r.Name, UID: r.UID},
		Type:           core.EventTypeWarning, Reason: reasonLeft, Message: cut(why), Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: core.EventSource{Component: "berth-approver"}, ReportingController: "berth-approver",
	}
}

// cut keeps to the API server's limit for messages: names in a request may be long.
func cut(text string) string {
	const longest = 1024
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest-3], "") + "..."
}
