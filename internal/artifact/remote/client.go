package remote

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"runtime"
	"sync"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/oci"
)

// Credential is what a registry or its token service knows somebody by. The
// zero value is nobody: anonymous.
type Credential struct {
	Username string
	Password desired.Secret
	// RefreshToken is changed into access tokens by the registry's token service;
	// AccessToken is sent to the registry as it is.
	RefreshToken, AccessToken desired.Secret
}

// Credentials says who the machine is to a registry, host[:port] as in the reference.
type Credentials func(ctx context.Context, registry string) (Credential, error)

// Client reads from registries. It keeps access tokens, so that it must not be
// copied after its first use; several goroutines may use it.
type Client struct {
	// HTTP carries proxies and CAs; nil is http.DefaultClient. Requests for blobs,
	// whose digest is known, carry a context of which Verified is true.
	HTTP *http.Client
	// Credentials is asked when a registry wants to know who asks; nil is
	// anonymous. Where it fails, the registry is asked anonymously; if that is
	// refused, its error is the one that is returned, in a *RequestError.
	Credentials Credentials
	// Arch is the architecture as Go names it; "" is that of this program.
	Arch string
	// Host answers in the place of every registry; nil: each answers itself.
	Host *Host

	once sync.Once
	auth *auth.Client
	// failures are the last errors of Credentials, by the registry's host.
	failures sync.Map
}

func (c *Client) arch() string {
	if c.Arch == "" {
		return runtime.GOARCH
	}
	return c.Arch
}

// Verified says that what a request brings is compared with a digest, so that
// it may come over plain http.
func Verified(ctx context.Context) bool {
	q, ok := ctx.Value(questionKey{}).(question)
	return ok && q.verified
}

// question goes with each request, redirects and token requests included.
type question struct {
	Subject
	// host is where the registry answers.
	host     string
	verified bool
}

type questionKey struct{}

// get asks once for what is below the repository, "/manifests/v1", and returns the
// answer if it is 200 or 206.
func (c *Client) get(ctx context.Context, r oci.Reference, q question, what string, header http.Header) (*http.Response, error) {
	c.once.Do(c.prepare)
	at, err := url.Parse(c.base(r) + what)
	if err != nil {
		return nil, &RequestError{q.Subject, err}
	}
	q.host = at.Host
	if c.standsIn() && at.Host != orasOf(r).Host() {
		at.RawQuery = "ns=" + url.QueryEscape(r.Registry)
	}
	ctx = context.WithValue(ctx, questionKey{}, q)
	ctx = auth.AppendScopesForHost(ctx, at.Host, auth.ScopeRepository(r.Repository, auth.ActionPull))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, &RequestError{q.Subject, err}
	}
	req.Header = header
	if c.Host != nil {
		maps.Copy(req.Header, c.Host.Header)
	}
	resp, err := c.auth.Do(req)
	if err != nil {
		return nil, c.blame(q, failure(ctx, q.Subject, err))
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		defer resp.Body.Close()
		return nil, c.blame(q, statusError(q, resp))
	}
	return resp, nil
}

// standsIn says whether a host answers in a registry's place.
func (c *Client) standsIn() bool { return c.Host != nil && c.Host.Base != "" }

// base is the URL of a repository.
func (c *Client) base(r oci.Reference) string {
	if c.standsIn() {
		return c.Host.Base + "/" + r.Repository
	}
	return "https://" + orasOf(r).Host() + "/v2/" + r.Repository
}

func orasOf(r oci.Reference) registry.Reference {
	return registry.Reference{Registry: r.Registry, Repository: r.Repository, Reference: name(r)}
}

// blame says why nobody asked by name, where the registry wants a name.
func (c *Client) blame(q question, err error) error {
	e, ok := errors.AsType[*StatusError](err)
	if !ok || e.Status != http.StatusUnauthorized {
		return err
	}
	if failure, ok := c.failures.Load(q.host); ok {
		return &RequestError{q.Subject, failure.(*credentialError)}
	}
	return err
}

// prepare sets the library up: without its own retries, whose client this is
// not.
func (c *Client) prepare() {
	client := &http.Client{}
	if c.HTTP != nil {
		*client = *c.HTTP
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = &checked{client.Transport, c.Host != nil && c.Host.SkipVerify}
	client.CheckRedirect = withoutReferer(client.CheckRedirect)
	c.auth = &auth.Client{
		Client:     client,
		Header:     http.Header{"User-Agent": {"berth"}},
		Cache:      auth.NewCache(),
		ClientID:   "berth",
		Credential: c.credential,
	}
}

// withoutReferer keeps a URL, whose query may be a signature, from the server to
// which it leads.
func withoutReferer(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		req.Header.Del("Referer")
		switch {
		case next != nil:
			return next(req, via)
		case len(via) >= 10:
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
}

func (c *Client) credential(ctx context.Context, host string) (auth.Credential, error) {
	if c.Credentials == nil {
		return auth.EmptyCredential, nil
	}
	name := host
	if host == (registry.Reference{Registry: "docker.io"}).Host() {
		name = "docker.io"
	}
	got, err := c.Credentials(ctx, name)
	if err != nil && ctx.Err() != nil {
		return auth.EmptyCredential, &credentialError{err}
	}
	if err != nil {
		c.failures.Store(host, &credentialError{err})
		return auth.EmptyCredential, nil
	}
	c.failures.Delete(host)
	return auth.Credential{
		Username:     got.Username,
		Password:     got.Password.Reveal(),
		RefreshToken: got.RefreshToken.Reveal(),
		AccessToken:  got.AccessToken.Reveal(),
	}, nil
}

// credentialError is a failure of Credentials.
type credentialError struct{ err error }

func (e *credentialError) Error() string {
	return "it lets nobody in anonymously, and there is no credential: " + e.err.Error()
}

func (e *credentialError) Unwrap() error { return e.err }

// failure makes one of our errors out of what the library and net/http return.
func failure(ctx context.Context, s Subject, err error) error {
	if e, ok := errors.AsType[*credentialError](err); ok {
		return &RequestError{s, e}
	}
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e
	}
	if cause := context.Cause(ctx); cause != nil {
		return &RequestError{s, cause}
	}
	if e := refusedToken(s, err); e != nil {
		return e
	}
	return &RequestError{s, Bare(err)}
}
