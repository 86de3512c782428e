package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificates "k8s.io/api/certificates/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/berth-dev/berth/internal/apiserver"
)

// slow is how long a request may wait before its key is kept on the machine, and it is
// told that it waits: so long that only a person can be the one who approves.
const slow = 3 * time.Second

// await follows the request until it is decided. A watch that ends is opened
// again after a fresh look; a request that somebody deleted is sent again.
func (o *order) await(ctx context.Context, csr *certificates.CertificateSigningRequest) ([]byte, error) {
	timer := time.NewTimer(slow)
	defer timer.Stop()
	pauses := apiserver.Intervals(50*time.Millisecond, 3*time.Second)
	for {
		o.seen = csr
		if certificate, err := o.outcome(csr); certificate != nil || err != nil {
			return certificate, err
		}
		next, err := o.follow(ctx, csr, timer.C)
		o.sayLate(timer.C) // where no watch stood to wait in
		if ctx.Err() != nil {
			return nil, o.late(errors.Join(err, ctx.Err()))
		}
		if next != nil {
			csr = next
			continue
		}
		if !apiserver.Pause(ctx, pauses.NextBackOff()) {
			continue
		}
		if next, err = o.look(ctx); err != nil {
			return nil, err
		}
		if next != nil {
			csr = next
		}
	}
}

// look reads the request anew, or sends it again where it is gone. It returns nil
// where neither can be done now, and an error where it never will be.
func (o *order) look(ctx context.Context) (*certificates.CertificateSigningRequest, error) {
	next, err := o.client.GetRequest(ctx, o.request.Name)
	switch {
	case err == nil:
		o.unknown = 0
		return next, nil
	case apierrors.IsUnauthorized(err):
		if o.unknown++; o.unknown >= refusals {
			return nil, o.blame(err) // a token that has ended: nobody's approval helps
		}
		return nil, nil
	case !apierrors.IsNotFound(err):
		return nil, nil //nolint:nilerr // the next look may succeed
	}
	next, err = o.submit(ctx)
	if ctx.Err() != nil {
		return nil, nil //nolint:nilerr // the wait says that it is over
	}
	return next, err
}

// sayLate does what is due once the request has waited for long.
func (o *order) sayLate(due <-chan time.Time) {
	select {
	case <-due:
		o.isLate()
	default:
	}
}

// isLate keeps the key on the machine, and tells who has yet to do what.
func (o *order) isLate() {
	o.pending.save(o.key)
	if o.tell != nil {
		o.tell(o.late(errStillWaits))
	}
}

var errStillWaits = errors.New("it is still waited for")

// follow returns the next version of the request, or nil if the watch ended.
func (o *order) follow(ctx context.Context, csr *certificates.CertificateSigningRequest, slow <-chan time.Time) (*certificates.CertificateSigningRequest, error) {
	w, err := o.client.WatchRequest(ctx, csr.Name, csr.ResourceVersion)
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for {
		select {
		case <-slow:
			o.isLate()
		case <-ctx.Done():
			return nil, nil
		case event := <-w.ResultChan():
			if next, ok := event.Object.(*certificates.CertificateSigningRequest); ok && event.Type != watch.Deleted {
				return next, nil
			}
			return nil, nil
		}
	}
}

// outcome returns the certificate, or an error if there will be none, or neither
// while the request is undecided.
func (o *order) outcome(csr *certificates.CertificateSigningRequest) ([]byte, error) {
	for _, condition := range csr.Status.Conditions {
		if condition.Status == core.ConditionFalse {
			continue
		}
		text := fmt.Errorf("%s: %s", condition.Reason, condition.Message)
		switch condition.Type {
		case certificates.CertificateDenied:
			o.pending.drop()
			return nil, o.failed(ReasonDenied, text, "somebody denied the request; delete it (kubectl delete csr "+csr.Name+") and run again")
		case certificates.CertificateFailed:
			o.pending.drop()
			return nil, o.failed(ReasonFailed, text, "see the log of the signer (kube-controller-manager)")
		}
	}
	return csr.Status.Certificate, nil
}

// late is the error at the deadline: it says who has not done what.
func (o *order) late(err error) *Error {
	if approved(o.seen) {
		return o.failed(ReasonUnsigned, err, "the request is approved but not signed: see the log of the signer (kube-controller-manager)")
	}
	since := o.seen.CreationTimestamp.UTC().Format(time.RFC3339)
	e := o.failed(ReasonPending, err, "kubectl certificate approve "+o.seen.Name)
	e.Err = fmt.Errorf("not approved since %s: %w", since, err)
	return e
}

func approved(csr *certificates.CertificateSigningRequest) bool {
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificates.CertificateApproved {
			return true
		}
	}
	return false
}
