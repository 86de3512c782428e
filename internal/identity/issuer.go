package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Issuer obtains and checks kubelet's client certificate. It implements
// converge.Issuer.
type Issuer struct {
	h machine
}

// machine is what the issuer needs of a host: the clock, and files, for a key
// whose request waits for a person.
type machine interface {
	host.FS
	host.Clock
}

// New returns an issuer for a host.
func New(h machine) *Issuer { return &Issuer{h: h} }

// defaultTimeout bounds a request whose contract sets no budget.
const defaultTimeout = 5 * time.Minute

// Issue sends a certificate signing request with the bootstrap token and waits
// until it is approved and signed, or until c.Timeout. The error is a *Error. A
// request that waits for approval keeps its key on the machine: the next Issue
// goes on with the same request.
func (i *Issuer) Issue(ctx context.Context, c *desired.ClientCertificate) (converge.Credential, error) {
	if c.Token == "" {
		return converge.Credential{}, &Error{Reason: ReasonNoToken, Node: c.NodeName, Server: c.Server,
			Err:    errors.New("no valid certificate is here and the contract brings no token"),
			Remedy: "give the contract a bootstrap token"}
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	budget, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cred, err := i.issue(budget, c)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return cred, fmt.Errorf("client certificate for node %s: %w", c.NodeName, context.Cause(ctx))
	}
	return cred, err
}

func (i *Issuer) issue(ctx context.Context, c *desired.ClientCertificate) (converge.Credential, error) {
	o, err := i.order(c)
	if err != nil {
		return converge.Credential{}, err
	}
	defer o.client.Close()
	csr, err := o.submit(ctx)
	if err != nil {
		return converge.Credential{}, err
	}
	certificate, err := o.await(ctx, csr)
	if err != nil {
		return converge.Credential{}, err
	}
	return o.finish(certificate)
}

// order begins an order: with the key of a request that still waits, or a new
// one.
func (i *Issuer) order(c *desired.ClientCertificate) (*order, error) {
	client, err := apiserver.NewClient(apiserver.Access{Server: c.Server, CA: []byte(c.CA), Token: c.Token})
	o := &order{c: c, client: client, pending: pending{i.h, pendingPath(c)}, now: i.h.Now}
	if err != nil {
		return nil, o.blame(err)
	}
	if o.key = o.pending.load(); o.key == nil {
		if o.key, err = newKey(); err != nil {
			return nil, err
		}
	}
	o.request, err = newRequest(c.NodeName, o.key)
	return o, err
}
