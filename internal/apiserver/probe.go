package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// confirmTries is how often an answer that no time changes is asked for before
// it is believed: the wrong answer may have come from one of several servers.
const confirmTries = 3

// Prober verifies that API servers can be reached and trusted. The zero value
// is ready.
type Prober struct {
	// Connections takes over the connection of a probe that went well; may be nil.
	Connections *Connections
	// Early is asked first; may be nil.
	Early *EarlyProbe
}

// Probe resolves the check's host, connects, verifies the certificate against
// the check's CA (the machine's own roots if empty) and waits for any HTTP
// answer. It tries at once, then again with growing pauses until the check's
// budget ends; a name that does not exist yet is asked for again, too, while a
// certificate that can't be trusted ends it after three tries. A try that began
// early is the first one. The error is a *Error.
func (pr Prober) Probe(ctx context.Context, c *desired.Check) error {
	budget, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	p, good := pr.Early.await(budget, c, pr.Connections)
	if good {
		return nil
	}
	if p == nil {
		var err error
		if p, err = newProbe(c, pr.Connections); err != nil {
			return err
		}
	}
	err := p.run(budget)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("probe API server %s: %w", p.host, context.Cause(ctx))
	}
	return err
}

// probe is one Probe on its way.
type probe struct {
	host, name string
	// address is that of host, where it is known; else "".
	address  string
	ca       []byte
	roots    *x509.CertPool
	start    time.Time
	last     *Error
	attempts int
	asked    resolvers
	// connections takes over the connection that was good.
	connections *Connections
	// trusted is called once with a connection that connections has, before the server has
	// answered; may be nil.
	trusted func()
}

// newProbe is a probe that has done nothing yet. The error is a *Error.
func newProbe(c *desired.Check, to *Connections) (*probe, error) {
	pool, err := roots([]byte(c.CA))
	if err != nil {
		return nil, &Error{Layer: LayerTLS, Host: c.Host, Cause: err, Permanent: true}
	}
	return &probe{host: hostPort(c), name: c.Host, address: c.Address, ca: []byte(c.CA), roots: pool, start: time.Now(), connections: to}, nil
}

func hostPort(c *desired.Check) string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

func (p *probe) run(ctx context.Context) error {
	next := Intervals(100*time.Millisecond, 2*time.Second)
	for {
		err := p.try(ctx)
		if err == nil {
			return nil
		}
		p.note(ctx, err)
		if p.settled() || !Pause(ctx, next.NextBackOff()) {
			return p.last
		}
	}
}

// try is one exchange on a connection of its own.
func (p *probe) try(ctx context.Context) (failed *Error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	ctx, way := traceConnection(ctx)
	cfg := &tls.Config{RootCAs: p.roots, ServerName: p.name, MinVersion: tls.VersionTLS12}
	t := newTransport(cfg, p.asked.resolver())
	if p.address != "" {
		t.DialContext = at(t.DialContext, p.host, p.address)
	}
	var once sync.Once
	give := func() {
		once.Do(func() {
			if p.address != "" {
				p.connections.found(p.host, p.address)
			}
			p.connections.give(keyOf(p.host, p.ca, cfg), t)
		})
	}
	defer func() {
		if failed != nil {
			t.CloseIdleConnections()
			return
		}
		give()
	}()
	if p.trusted != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { give(); p.trusted() }})
	}
	// The version is what a server tells anonymous callers; whatever it answers,
	// even a refusal, it answers.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.host+"/version", http.NoBody)
	if err != nil {
		return way.blame(p.host, err)
	}
	resp, err := (&http.Client{Transport: t, CheckRedirect: noRedirects}).Do(req)
	if err != nil {
		return way.blame(p.host, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
	return nil
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// at dials a host at an address; what else is dialled, a proxy, is where it is.
func at(d dial, host, address string) dial {
	return func(ctx context.Context, network, to string) (net.Conn, error) {
		if to == host {
			_, port, err := net.SplitHostPort(host)
			if err != nil {
				return nil, err
			}
			to = net.JoinHostPort(address, port)
		}
		return d(ctx, network, to)
	}
}

// note keeps the error of a try. One that the end of the budget cut off says
// less than the one before it.
func (p *probe) note(ctx context.Context, err *Error) {
	p.attempts++
	if p.last == nil || ctx.Err() == nil {
		p.last = err
	}
	p.last.Attempts, p.last.Elapsed = p.attempts, time.Since(p.start)
	p.last.Resolvers = p.asked.list()
}

func (p *probe) settled() bool { return p.last.Permanent && p.attempts >= confirmTries }
