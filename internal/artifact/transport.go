package artifact

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/berth-dev/berth/internal/artifact/remote"
)

// newClient is an HTTP client of its own: proxies only from the environment, and
// no decompression behind our back, since digests are of the bytes as sent.
func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: 30 * time.Second,
			DisableCompression:    true,
			ForceAttemptHTTP2:     true,
			IdleConnTimeout:       30 * time.Second,
			ReadBufferSize:        128 << 10,
			// Of each download that is ahead of the disk: without it, 4 MiB.
			HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 1 << 20},
			OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
				if resp.StatusCode == http.StatusOK {
					return nil
				}
				return &proxyError{&statusError{status: resp.StatusCode}}
			},
		},
		CheckRedirect: redirect,
	}
}

// verifiedKey marks requests whose content has a digest: only those may be led
// to plain http.
type verifiedKey struct{}

func redirect(req *http.Request, via []*http.Request) error {
	// It would show the first URL, whose query may be a secret, to another server.
	req.Header.Del("Referer")
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if req.URL.Scheme != "https" && req.Context().Value(verifiedKey{}) == nil && !remote.Verified(req.Context()) {
		return &RefusedError{URL: shown(req.URL), Reason: "redirect to plain http needs a digest"}
	}
	return nil
}
