package remote

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/oci"
)

// checked makes errors of bad answers where the whole answer is still at hand:
// the library drops headers such as Retry-After. 401 passes, since the library
// answers it with a token.
type checked struct {
	next http.RoundTripper
	// anybody: the server is not made to prove who it is.
	anybody bool
}

// RoundTrip implements http.RoundTripper.
func (c *checked) RoundTrip(req *http.Request) (*http.Response, error) {
	q, _ := req.Context().Value(questionKey{}).(question)
	if req.URL.Scheme != "https" && !q.verified {
		return nil, &UnverifiedError{"led to plain http"}
	}
	if c.anybody && !q.verified {
		return nil, &UnverifiedError{"its certificate is not to be verified"}
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil || resp.StatusCode < 400 || resp.StatusCode == http.StatusUnauthorized {
		return resp, err
	}
	defer resp.Body.Close()
	resp.Request = req
	return nil, statusError(q, resp)
}

// maxErrorBody bounds what is read of an answer that says no.
const maxErrorBody = 8 << 10

func statusError(q question, resp *http.Response) *StatusError {
	e := &StatusError{Subject: q.Subject, Status: resp.StatusCode, RetryAfter: RetryAfter(resp.Header, time.Now())}
	if host := resp.Request.URL.Host; host != q.host {
		e.Host = host
	}
	var body struct {
		Errors      errcode.Errors `json:"errors"`
		Code        string         `json:"error"`
		Description string         `json:"error_description"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if json.Unmarshal(text, &body) != nil {
		return e
	}
	e.Code, e.Message = body.Code, body.Description
	if len(body.Errors) > 0 {
		e.Code, e.Message = body.Errors[0].Code, body.Errors[0].Message
	}
	secrets := sent(resp.Request)
	e.Code, e.Message = words(e.Code, 64, secrets), words(e.Message, 300, secrets)
	return e
}

// RetryAfter is how long the sender of an answer asks to be left alone, in seconds
// or by a date; 0 if it did not say. The date counts from the answer's own, for
// this machine's clock may be wrong.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	const maxWait = 24 * time.Hour
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxWait)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(0, at.Sub(now)), maxWait)
}

// words makes a server's text fit to be shown: one line, bounded, without what
// was sent to it in confidence.
func words(text string, limit int, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "REDACTED")
	}
	return oci.Words(text, limit)
}

// sent are the secrets in a request: those of its Authorization header and of
// its form.
func sent(req *http.Request) []string {
	var all []string
	kind, text, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	all = append(all, text)
	if plain, err := base64.StdEncoding.DecodeString(text); err == nil && strings.EqualFold(kind, "basic") {
		_, password, _ := strings.Cut(string(plain), ":")
		all = append(all, password)
	}
	if req.GetBody != nil {
		all = append(all, formSecrets(req)...)
	}
	return nonEmpty(all)
}

func formSecrets(req *http.Request) []string {
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	text, _ := io.ReadAll(io.LimitReader(body, 1<<20))
	form, _ := url.ParseQuery(string(text))
	return []string{form.Get("password"), form.Get("refresh_token"), form.Get("access_token")}
}

func nonEmpty(all []string) []string {
	var some []string
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}

// refusedToken is the status of a token service that knows nobody of that name,
// or nil. Its words stay out: the request is not at hand to compare them with.
func refusedToken(s Subject, err error) error {
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return &StatusError{Subject: s, Status: http.StatusUnauthorized, Message: "it wants a user and a password, and none is known"}
	}
	e, ok := errors.AsType[*errcode.ErrorResponse](err)
	if !ok {
		return nil
	}
	out := &StatusError{Subject: s, Status: e.StatusCode, Host: e.URL.Host, Message: "no token was given"}
	if len(e.Errors) > 0 {
		out.Code = words(e.Errors[0].Code, 64, nil)
	}
	return out
}

// Bare takes URLs out of an error, since their queries may be signatures.
func Bare(err error) error {
	for {
		u, ok := errors.AsType[*url.Error](err)
		if !ok {
			break
		}
		err = u.Err
	}
	if text := desired.BareText(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}
