package identity

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	certificates "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
)

// order is one certificate on its way.
type order struct {
	who    *subject
	access apiserver.Access
	client *apiserver.Client
	// azure: access shows a token of Microsoft Entra ID.
	azure bool
	key   *ecdsa.PrivateKey
	// request is what is sent, seen what the server has of it; nil before its first
	// answer.
	request *certificates.CertificateSigningRequest
	seen    *certificates.CertificateSigningRequest
	pending pending
	// unknown is how often in a row the server did not know who asks.
	unknown int
	now     func() time.Time
	// tell is Issuer.tell.
	tell func(error)
}

// refusals is how often a refusal is asked again before it is believed: a token
// or a role that was made a moment ago has not reached every server yet.
const refusals = 3

// submit sends the request. An answer that got lost leaves a request behind; the
// next try finds it under the same name.
func (o *order) submit(ctx context.Context) (*certificates.CertificateSigningRequest, error) {
	var last error
	refused := 0
	csr, err := backoff.Retry(ctx, func() (*certificates.CertificateSigningRequest, error) {
		csr, err := o.client.CreateRequest(ctx, o.request)
		if apierrors.IsAlreadyExists(err) {
			csr, err = o.client.GetRequest(ctx, o.request.Name)
		}
		if err == nil || last == nil || ctx.Err() == nil {
			last = err
		}
		if final(err) {
			if refused++; refused >= refusals {
				err = backoff.Permanent(err)
			}
		}
		return csr, err
	}, retries()...)
	if err != nil {
		return nil, o.blame(last)
	}
	return csr, nil
}

func retries() []backoff.RetryOption {
	pauses := apiserver.Intervals(200*time.Millisecond, 3*time.Second)
	return []backoff.RetryOption{backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0)}
}

// final says whether an answer is unlikely to change with time.
func final(err error) bool {
	e, ok := errors.AsType[*apiserver.Error](err)
	return ok && e.Permanent || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) ||
		apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// finish pairs the certificate with its key and makes sure that they serve.
func (o *order) finish(certificate []byte) (converge.Credential, error) {
	key, err := encodeKey(o.key)
	if err != nil {
		return converge.Credential{}, err
	}
	o.pending.drop()
	if reason := pairProblem(certificate, key, o.who, o.now(), 0); reason != "" {
		return converge.Credential{}, o.failed(ReasonUnusable, errors.New("issued certificate: "+reason), "compare this machine's clock with the cluster's")
	}
	return converge.Credential{Certificate: certificate, Key: key}, nil
}
