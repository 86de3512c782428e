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
	// connections may have a connection to an API server; may be nil.
	connections *apiserver.Connections
	// tokens gives the tokens of an identity of Azure; nil where there are none.
	tokens TokenSource
	// tell is told once of a request that waits for long; may be nil.
	tell func(error)
	// early is asked first; may be nil.
	early *EarlyIssue
}

// TokenSource has the tokens of identities of Azure.
type TokenSource interface {
	// Bootstrap gives the token for the API server, asked for by a way out of the machine.
	Bootstrap(ctx context.Context, a *desired.AzureIdentity, via *desired.Egress) (desired.Secret, error)
	// Lacks says what is not here that the identity proves itself with. It asks no server.
	Lacks(a *desired.AzureIdentity) error
}

// machine is what the issuer needs of a host: the clock, and files, for a key
// whose request waits for a person.
type machine interface {
	host.FS
	host.Clock
}

// New returns an issuer for a host.
func New(h machine) *Issuer { return &Issuer{h: h} }

// Over returns an issuer that goes on with connections on which API servers were
// probed.
func (i *Issuer) Over(c *apiserver.Connections) *Issuer {
	out := *i
	out.connections = c
	return &out
}

// With returns an issuer that has the tokens of identities of Azure.
func (i *Issuer) With(tokens TokenSource) *Issuer {
	out := *i
	out.tokens = tokens
	return &out
}

// Telling returns an issuer that says, as soon as only a person can be the one who
// approves, what would end the wait. It waits on.
func (i *Issuer) Telling(tell func(error)) *Issuer {
	out := *i
	out.tell = tell
	return &out
}

// After returns an issuer that takes over a request that began early.
func (i *Issuer) After(e *EarlyIssue) *Issuer {
	out := *i
	out.early = e
	return &out
}

// defaultTimeout bounds a request whose contract sets no budget.
const defaultTimeout = 5 * time.Minute

// Issue sends a certificate signing request with the bootstrap token and waits
// until it is approved and signed, or until c.Timeout. The error is a *Error. A
// request that waits for approval keeps its key on the machine: the next Issue
// goes on with the same request. A name that another machine keeps alive is refused.
func (i *Issuer) Issue(ctx context.Context, c *desired.ClientCertificate) (converge.Credential, error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	budget, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b := i.early.await(budget, c)
	if !b.good {
		o, err := i.order(ctx, c)
		if err != nil {
			return converge.Credential{}, err
		}
		o.key = b.key
		if b.cred, err = i.within(budget, timeout, o); err != nil {
			return b.cred, err
		}
	}
	return b.cred, i.free(ctx, b)
}

// free refuses a certificate whose name is another machine's, as far as that can be known.
func (i *Issuer) free(ctx context.Context, b *begunIssue) error {
	if b.name == nil {
		var err error
		if b.name, err = i.ownName(b.c, b.cred, nil); err != nil {
			return fmt.Errorf("look at node %s: %w", b.c.NodeName, err)
		}
	}
	defer b.name.client.HandOn(i.connections)
	if !b.known {
		b.node, _ = b.name.look(ctx)
	}
	return b.name.free(ctx, b.node)
}

// order is the one for a Node's certificate.
func (i *Issuer) order(ctx context.Context, c *desired.ClientCertificate) (*order, error) {
	token, err := i.token(ctx, c)
	if err != nil {
		return nil, err
	}
	access := apiserver.Access{Server: c.Server, CA: []byte(c.CA), Token: token, Connections: i.connections}
	return &order{who: nodeSubject(c.NodeName), access: access, azure: c.Azure != nil, pending: pending{i.h, pendingPath(c)}}, nil
}

// IssueForAgent obtains the certificate of an agent with what access shows:
// a bootstrap token, or the certificate that is in force. It is bounded and goes on
// as Issue does.
func (i *Issuer) IssueForAgent(ctx context.Context, a Agent, access apiserver.Access) (converge.Credential, error) {
	who := agentSubject(a)
	return i.within(ctx, defaultTimeout, &order{who: who, access: access, pending: pending{i.h, pendingName("agent-", who.user, access.Server, string(access.CA))}})
}

func (i *Issuer) within(ctx context.Context, timeout time.Duration, o *order) (converge.Credential, error) {
	budget, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cred, err := i.issue(budget, o)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return cred, fmt.Errorf("client certificate for node %s: %w", o.who.name, context.Cause(ctx))
	}
	return cred, err
}

func (i *Issuer) issue(ctx context.Context, o *order) (converge.Credential, error) {
	if err := i.begin(o); err != nil {
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

// begin begins an order: with the key of a request that still waits, or a new one, where
// it has none yet.
func (i *Issuer) begin(o *order) (err error) {
	o.now, o.tell = i.h.Now, i.tell
	if o.client, err = apiserver.NewClient(o.access); err != nil {
		return o.blame(err)
	}
	if o.key == nil {
		o.key = o.pending.load()
	}
	if o.key == nil {
		if o.key, err = newKey(); err != nil {
			return err
		}
	}
	o.request, err = newRequest(o.who, o.key)
	return err
}
