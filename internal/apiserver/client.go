package apiserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	clientcmd "k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-dev/berth/internal/desired"
)

// Access is an API server and what makes it and us known to each other: a token,
// or a certificate with its key.
type Access struct {
	// Server is a URL: https://host:port.
	Server string
	// CA is PEM; empty means the machine's own roots.
	CA []byte
	// Token is a bearer token.
	Token desired.Secret
	// Certificate and Key are PEM.
	Certificate, Key []byte
	// Plugin prints tokens, where the others are not there; may be nil.
	Plugin *clientcmd.ExecConfig
	// Connections may have a connection to the server; may be nil.
	Connections *Connections
	// Handshake is a connection that began without Certificate; may be nil.
	Handshake *Handshake
	// Silence is how long a connection may be silent before the server is asked for a
	// sign of life; 0 is ten seconds.
	Silence time.Duration
}

// Client makes a node's calls. It has three groups of the API in its scheme and
// no more: the generated clientset would register all of them at each start of
// the program.
type Client struct {
	host     string
	core     *rest.RESTClient
	requests *rest.RESTClient
	leases   *rest.RESTClient
	params   runtime.ParameterCodec
	sessions authSessions
}

// NewClient makes a client; it opens no connection yet.
func NewClient(a Access) (*Client, error) {
	u, err := url.Parse(a.Server)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of an API server", a.Server)
	}
	c := &Client{host: u.Host}
	if err := c.Renew(a); err != nil {
		return nil, err
	}
	return c, c.connect(a.Server)
}

func (a Access) tls() (*tls.Config, error) {
	pool, err := roots(a.CA)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if len(a.Certificate) == 0 {
		return cfg, nil
	}
	pair, err := tls.X509KeyPair(a.Certificate, a.Key)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}

// groups are those of the API that a client speaks. They are registered once: a run has
// several clients.
var groups = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, certificates.AddToScheme, coordination.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	return scheme, nil
})

func (c *Client) connect(server string) error {
	scheme, err := groups()
	if err != nil {
		return err
	}
	c.params = runtime.NewParameterCodec(scheme)
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	hc := &http.Client{Transport: &c.sessions, CheckRedirect: noRedirects}
	if c.core, err = restClient(server, "/api", core.SchemeGroupVersion, codecs, hc); err != nil {
		return err
	}
	if c.leases, err = restClient(server, "/apis", coordination.SchemeGroupVersion, codecs, hc); err != nil {
		return err
	}
	c.requests, err = restClient(server, "/apis", certificates.SchemeGroupVersion, codecs, hc)
	return err
}

func restClient(server, path string, gv schema.GroupVersion, codecs runtime.NegotiatedSerializer, hc *http.Client) (*rest.RESTClient, error) {
	return rest.RESTClientForConfigAndClient(&rest.Config{
		Host:    server,
		APIPath: path,
		ContentConfig: rest.ContentConfig{GroupVersion: &gv, NegotiatedSerializer: codecs,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON},
		UserAgent:      "berth",
		QPS:            -1, // the callers pace themselves
		WarningHandler: rest.NoWarnings{},
	}, hc)
}

// bearer puts the token on each request.
type bearer struct {
	token desired.Secret
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token.Reveal())
	}
	return b.next.RoundTrip(r)
}

// Close drops idle connections.
func (c *Client) Close() { c.sessions.close(nil) }

// HandOn closes the client, and leaves its connection to who shows the same next.
func (c *Client) HandOn(to *Connections) { c.sessions.close(to) }

// call runs one exchange and names the layer at which it failed.
func (c *Client) call(ctx context.Context, f func(context.Context) error) error {
	ctx, way := traceConnection(ctx)
	if err := f(ctx); err != nil {
		return way.blame(c.host, err)
	}
	return nil
}
