package artifact

import (
	"errors"
	"net"
	"net/http"
	"time"
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
		},
		CheckRedirect: redirect,
	}
}

// verifiedKey marks requests whose content has a digest: only those may be led
// to plain http.
type verifiedKey struct{}

func redirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if req.URL.Scheme != "https" && req.Context().Value(verifiedKey{}) == nil {
		return &RefusedError{URL: shown(req.URL), Reason: "redirect to plain http needs a digest"}
	}
	return nil
}
