package identity

import (
	"context"
	"crypto/ecdsa"
	"sync"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// EarlyIssue is a request for a node's certificate that began before anybody knew that it
// is needed. It is for one plan. The zero value has begun nothing, and so has nil.
type EarlyIssue struct {
	mu    sync.Mutex
	begun *begunIssue
}

// begunIssue is one request, whose outcome is there when done is closed.
type begunIssue struct {
	c    *desired.ClientCertificate
	done chan struct{}
	cred converge.Credential
	good bool
	// key is that of the request; nil where none was sent.
	key *ecdsa.PrivateKey
	// name is that of the node; nil where nobody has asked for it.
	name *ownName
	// node is the one of that name; nil where there is none. known: the server has said so.
	node  *core.Node
	known bool
}

// earlyFor is how long a request that began early is followed. Whoever approves without a
// person is quicker; for a person it is waited with the same request.
const earlyFor = 2 * time.Second

// Begin asks for the certificate that a bootstrap token is shown for. What becomes of it
// tells nobody: who needs the certificate goes on with the same request, and has the
// error. What it needs of the issuer it takes before it returns.
func (e *EarlyIssue) Begin(ctx context.Context, i *Issuer, c *desired.ClientCertificate) {
	if c.Azure != nil { // each token is asked of a cloud, which counts
		return
	}
	o, err := i.order(ctx, c)
	if err != nil || i.begin(o) != nil {
		return
	}
	o.tell = nil
	b := &begunIssue{c: c, done: make(chan struct{})}
	e.mu.Lock()
	e.begun = b
	e.mu.Unlock()
	go func() {
		defer close(b.done)
		ctx, cancel := context.WithTimeout(ctx, earlyFor)
		defer cancel()
		_ = converge.Safely(func() error { return b.ask(ctx, i, o) })
	}()
}

// ask sends the request, once, and follows it; then it looks whose the name is, since who
// needs the certificate is going to ask.
func (b *begunIssue) ask(ctx context.Context, i *Issuer, o *order) error {
	defer o.client.Close()
	csr, err := o.client.CreateRequest(ctx, o.request)
	b.key = o.key // the server may have it all the same
	if err != nil {
		return err
	}
	hs := apiserver.BeginHandshake(ctx, apiserver.Access{Server: b.c.Server, CA: []byte(b.c.CA), Connections: i.connections})
	defer hs.Close()
	certificate, err := o.await(ctx, csr)
	if err != nil {
		return err
	}
	if b.cred, err = o.finish(certificate); err != nil {
		return err
	}
	b.good = true
	if b.name, err = i.ownName(b.c, b.cred, hs); err == nil {
		b.node, b.known = b.name.look(ctx)
	}
	return err
}

// await is what came of asking early, for who asks for the same: the certificate, or else
// the key of the request. It is empty where nothing did.
func (e *EarlyIssue) await(ctx context.Context, c *desired.ClientCertificate) *begunIssue {
	b := e.take(c)
	if b == nil {
		return &begunIssue{c: c}
	}
	select {
	case <-b.done:
		return b
	case <-ctx.Done():
		return &begunIssue{c: c}
	}
}

// take is what began early, once; nil where nothing did, or for another certificate.
func (e *EarlyIssue) take(c *desired.ClientCertificate) *begunIssue {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.begun
	e.begun = nil
	if b == nil || b.c.NodeName != c.NodeName || b.c.Server != c.Server || b.c.CA != c.CA || c.Azure != nil ||
		b.c.Token != c.Token || b.c.TokenFile != c.TokenFile || b.c.TokenEnv != c.TokenEnv {
		return nil
	}
	return b
}
