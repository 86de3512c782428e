package apiserver

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// tryTimeout bounds each try: a black hole costs this much and no more.
const tryTimeout = 5 * time.Second

// newTransport is an HTTP transport of its own: proxies only from the
// environment, pings so that a dead connection under a watch is noticed.
func newTransport(cfg *tls.Config, resolver *net.Resolver) *http.Transport {
	dialer := &net.Dialer{Timeout: tryTimeout, KeepAlive: 15 * time.Second, Resolver: resolver}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     cfg,
		TLSHandshakeTimeout: tryTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
		IdleConnTimeout:     time.Minute,
		MaxIdleConns:        2,
	}
}

// noRedirects keeps a credential with the server that it was meant for.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
