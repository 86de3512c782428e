package artifact

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/net/http/httpproxy"

	"github.com/berth-dev/berth/internal/desired"
)

// clients are the HTTP clients of a fetcher, one for each way out.
type clients struct {
	mu  sync.Mutex
	all map[*desired.Egress]*http.Client
}

// by is the client for a way out; base is that of the machine.
func (c *clients) by(base *http.Client, via *desired.Egress) (*http.Client, error) {
	if via == nil {
		return base, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.all[via]; client != nil {
		return client, nil
	}
	client, err := through(base, via)
	if err != nil {
		return nil, err
	}
	if c.all == nil {
		c.all = map[*desired.Egress]*http.Client{}
	}
	c.all[via] = client
	return client, nil
}

// through is a client like base that takes the way out that a contract names.
func through(base *http.Client, via *desired.Egress) (*http.Client, error) {
	from, ok := base.Transport.(*http.Transport)
	if !ok {
		return nil, errors.New("the HTTP client can't be given a proxy")
	}
	t := from.Clone()
	if via.HTTPProxy != "" || via.HTTPSProxy != "" {
		cfg := httpproxy.Config{HTTPProxy: string(via.HTTPProxy), HTTPSProxy: string(via.HTTPSProxy), NoProxy: strings.Join(via.NoProxy, ",")}
		choose := cfg.ProxyFunc()
		t.Proxy = func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
	}
	if err := trust(t, via.CAs); err != nil {
		return nil, err
	}
	client := *base
	client.Transport = t
	return &client, nil
}

// trust adds CAs to those that a transport trusts.
func trust(t *http.Transport, cas []string) error {
	if len(cas) == 0 {
		return nil
	}
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	pool := x509.NewCertPool()
	if known := t.TLSClientConfig.RootCAs; known != nil {
		pool = known.Clone()
	} else if system, err := x509.SystemCertPool(); err == nil {
		pool = system
	}
	for i, ca := range cas {
		if !pool.AppendCertsFromPEM([]byte(ca)) {
			return fmt.Errorf("CA %d for downloads holds no certificate", i)
		}
	}
	t.TLSClientConfig.RootCAs = pool
	return nil
}
