package oci

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/berth-dev/berth/internal/desired"
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

// Client reads from registries. It keeps access tokens, so that it must not be
// copied after its first use; several goroutines may use it.
type Client struct {
	// HTTP carries proxies and CAs; nil is http.DefaultClient. Requests for blobs,
	// whose digest is known, carry a context of which Verified is true.
	HTTP *http.Client
	// Credentials is asked when a registry wants to know who asks; nil is
	// anonymous. registry is host[:port] as in the reference.
	Credentials func(ctx context.Context, registry string) (Credential, error)
	// Arch is the architecture as Go names it; "" is that of this program.
	Arch string

	once sync.Once
	auth *auth.Client
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

// get asks once and returns the answer if it is 200 or 206.
func (c *Client) get(ctx context.Context, r Reference, q question, url string, header http.Header) (*http.Response, error) {
	c.once.Do(c.prepare)
	q.host = r.oras().Host()
	ctx = context.WithValue(ctx, questionKey{}, q)
	ctx = auth.AppendRepositoryScope(ctx, r.oras(), auth.ActionPull)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, &RequestError{q.Subject, err}
	}
	req.Header = header
	resp, err := c.auth.Do(req)
	if err != nil {
		return nil, failure(ctx, q.Subject, err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		defer resp.Body.Close()
		return nil, statusError(q, resp)
	}
	return resp, nil
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
	client.Transport = &checked{client.Transport}
	c.auth = &auth.Client{
		Client:     client,
		Header:     http.Header{"User-Agent": {"berth"}},
		Cache:      auth.NewCache(),
		ClientID:   "berth",
		Credential: c.credential,
	}
}

func (c *Client) credential(ctx context.Context, host string) (auth.Credential, error) {
	if c.Credentials == nil {
		return auth.EmptyCredential, nil
	}
	if host == (registry.Reference{Registry: "docker.io"}).Host() {
		host = "docker.io"
	}
	got, err := c.Credentials(ctx, host)
	if err != nil {
		return auth.EmptyCredential, &credentialError{err}
	}
	return auth.Credential{
		Username:     got.Username,
		Password:     got.Password.Reveal(),
		RefreshToken: got.RefreshToken.Reveal(),
		AccessToken:  got.AccessToken.Reveal(),
	}, nil
}

// credentialError is a failure of Credentials, to be found again under the words
// of the library.
type credentialError struct{ err error }

func (e *credentialError) Error() string { return "get credential: " + e.err.Error() }

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
	return &RequestError{s, bare(err)}
}
