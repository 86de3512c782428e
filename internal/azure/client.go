package azure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/net/http/httpproxy"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// How long a service may take.
const (
	connectBudget = 5 * time.Second
	answerBudget  = 20 * time.Second
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 256 << 10

// unguided is how every client here meets a redirect: as the answer that it is. A
// credential goes where it is meant to, and nowhere else.
func unguided(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// direct is a client that uses no proxy. control may refuse an address.
func direct(control func(network, address string, _ syscall.RawConn) error) *http.Client {
	d := &net.Dialer{Timeout: connectBudget, Control: control}
	return &http.Client{CheckRedirect: unguided, Transport: &http.Transport{
		DialContext: d.DialContext, ResponseHeaderTimeout: answerBudget, MaxResponseHeaderBytes: 64 << 10,
	}}
}

// outward is a client for the Internet, by a way out; nil is the proxy of the
// environment and the CAs of the machine.
func outward(via *desired.Egress) (*http.Client, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: connectBudget}).DialContext,
		TLSHandshakeTimeout: answerBudget, ResponseHeaderTimeout: answerBudget, ForceAttemptHTTP2: true,
	}
	if via == nil {
		return &http.Client{CheckRedirect: unguided, Transport: t}, nil
	}
	if via.HTTPProxy != "" || via.HTTPSProxy != "" {
		choose := (&httpproxy.Config{HTTPProxy: via.HTTPProxy.Reveal(), HTTPSProxy: via.HTTPSProxy.Reveal(), NoProxy: strings.Join(via.NoProxy, ",")}).ProxyFunc()
		t.Proxy = func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
	}
	if len(via.CAs) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		for i, ca := range via.CAs {
			if !pool.AppendCertsFromPEM([]byte(ca)) {
				return nil, fmt.Errorf("CA %d holds no certificate", i)
			}
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{CheckRedirect: unguided, Transport: t}, nil
}

var errNotLoopback = errors.New("the address is not this machine's own")

// loopbackOnly refuses every address that leads off the machine, whatever a name
// resolves to.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("%s: %w", address, errNotLoopback)
	}
	return nil
}

var errEndless = errors.New("the answer does not end")

// answer is what a service said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request and reads the whole answer, whatever its status is.
func ask(client *http.Client, req *http.Request) (answer, error) {
	return askFor(client, req, maxAnswer)
}

// askFor is ask for an answer of so many bytes at most.
func askFor(client *http.Client, req *http.Request, most int64) (answer, error) {
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = errEndless
	}
	if err != nil {
		return answer{}, err
	}
	return answer{resp.StatusCode, resp.Header, body}, nil
}

// StatusError is an answer that is no token.
type StatusError struct {
	Status int
	// Code and Text are what the service says: an OAuth error and its description.
	Code, Text string
}

// Error gives status and the service's own words.
func (e *StatusError) Error() string {
	out := fmt.Sprintf("HTTP status %d", e.Status)
	for _, s := range []string{e.Code, e.Text} {
		if s != "" {
			out += ": " + s
		}
	}
	return out
}

// Silent says that an error tells nothing of what was asked for: nobody answered, or is
// busy.
func Silent(err error) bool {
	e, ok := errors.AsType[*StatusError](err)
	return !ok || serverBusy(e.Status) || e.Status == http.StatusGone
}

// refusal reads what an answer other than 200 says.
func (a answer) refusal() error {
	var said struct {
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
	}
	e := &StatusError{Status: a.status}
	if json.Unmarshal(a.body, &said) == nil {
		e.Text = line(said.Description)
		var nested struct{ Code, Message string } // Azure Resource Manager
		if json.Unmarshal(said.Error, &e.Code) != nil && json.Unmarshal(said.Error, &nested) == nil {
			e.Code, e.Text = nested.Code, line(nested.Message)
		}
		e.Code = line(e.Code)
	}
	return e
}

// line is the first line of a text, printable and not long.
func line(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return -1
	}, text)
	const most = 300
	if cut := []rune(text); len(cut) > most {
		return string(cut[:most]) + " …"
	}
	return text
}

// accessToken is the token in an answer of a token endpoint.
func (a answer) accessToken() (string, error) {
	if a.status != http.StatusOK {
		return "", a.refusal()
	}
	var said struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(a.body, &said); err != nil {
		return "", fmt.Errorf("the answer can't be read: %w", err)
	}
	if said.Token == "" {
		return "", errors.New("the answer holds no token")
	}
	return said.Token, nil
}

// metadataBusy says that the same question may have a better answer soon. The metadata
// service answers 404 and 410 while it is updated.
//
// Source: learn.microsoft.com/entra/identity/managed-identities-azure-resources,
// "How to use managed identities on an Azure VM to acquire an access token", retry
// guidance.
func metadataBusy(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone || serverBusy(status)
}

// serverBusy is so of other services.
func serverBusy(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// Pauses between tries: the first one, and how often and for how long a metadata service
// that is about to be back is asked, in first pauses.
const (
	firstPause = time.Second
	tries      = 5
	gonePauses = 10
	gonePeriod = 70
)

// patience is how long a service is asked again.
type patience struct {
	// busy says that the same question may have a better answer soon.
	busy func(status int) bool
	// dials is how often a service is tried that does not take a connection.
	dials int
}

var (
	instancePatience = patience{metadataBusy, 2} // nothing is there but in Azure
	commonPatience   = patience{serverBusy, tries}
)

// patiently sends a request again while a service is busy or not reached.
func (s *Source) patiently(ctx context.Context, client *http.Client, p patience, request func() (*http.Request, error)) (answer, error) {
	return s.again(ctx, p, func() (answer, error) {
		req, err := request()
		if err != nil {
			return answer{}, err
		}
		return ask(client, req.WithContext(ctx))
	})
}

// again tries until the answer is another than busy, as late as the service asks for.
// A pause is not begun where the time is over before a connection can be made after it:
// what went wrong is then said, and not that the time is over.
func (s *Source) again(ctx context.Context, p patience, try func() (answer, error)) (answer, error) {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(Budget)
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = s.endpoints.pause
	var gone time.Time // the first answer 410
	for n, dials := 1, 1; ; {
		a, err := try()
		if err == nil && !p.busy(a.status) {
			return a, nil
		}
		now, pause := time.Now(), max(pauses.NextBackOff(), s.endpoints.pause)
		enough := n >= tries
		switch {
		case err != nil:
			enough = enough || final(err) || unanswered(err) && dials >= p.dials
			dials++
		case a.status == http.StatusGone && p.busy(http.StatusGone):
			if gone.IsZero() {
				gone = now
			}
			left := gonePeriod*s.endpoints.pause - now.Sub(gone)
			pause, n, enough = min(gonePauses*s.endpoints.pause, left), n-1, left <= 0
		}
		if err == nil {
			err = a.refusal()
			pause = max(pause, retryAfter(a.header, now))
		}
		if enough || ctx.Err() != nil || now.Add(pause+connectBudget).After(end) {
			return a, err
		}
		n++
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return a, fmt.Errorf("%w; %w", err, context.Cause(ctx))
		}
	}
}

// final says that the next try would end as this one: what answers is not who is asked,
// or the error comes with its own remedy.
func final(err error) bool {
	_, coded := errors.AsType[*exitcode.Error](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return coded || untrusted || errors.Is(err, errNotLoopback) || errors.Is(err, errEndless)
}

// unanswered says that nobody took a connection.
func unanswered(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial" && (e.Timeout() || errors.Is(e, syscall.EHOSTUNREACH) || errors.Is(e, syscall.ENETUNREACH))
}

// retryAfter is how long a service asks to be left alone (RFC 9110, 10.2.3); 0 where it
// does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	return 0
}
