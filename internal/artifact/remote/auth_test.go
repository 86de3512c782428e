package remote

import (
	"context"
	"errors"
	"fmt"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// leaks says whether an error shows a secret of the tests.
func leaks(err error) bool {
	text := fmt.Sprintf("%v %+v %#v", err, err, err)
	return strings.Contains(text, "hunter2") || strings.Contains(text, goodToken)
}

// TestBare has a proxy that is misspelled, with its password.
func TestBare(t *testing.T) {
	err := &url.Error{Op: "Get", URL: "https://u:hunter2@reg/x", Err: errors.New(`invalid proxy address "http://u:hunter2@p:x/": bad port; /a?sig=hunter2`)}
	if err := Bare(err); leaks(err) || !strings.Contains(err.Error(), "invalid proxy address") {
		t.Error(err)
	}
}

func TestCredentials(t *testing.T) {
	nobody := Credential{}
	good := Credential{Username: "u", Password: "hunter2"}
	bad := Credential{Username: "u", Password: "hunter2-wrong"}
	for name, c := range map[string]struct {
		auth       string
		anonymous  bool
		credential Credential
		want       int
	}{
		"open":                      {"", true, nobody, 200},
		"anonymous token":           {"token", true, nobody, 200},
		"anonymous is not enough":   {"token", false, nobody, 401},
		"user for a token":          {"token", false, good, 200},
		"wrong user for a token":    {"token", false, bad, 401},
		"refresh token":             {"token", false, Credential{RefreshToken: "hunter2-refresh"}, 200},
		"wrong refresh token":       {"token", false, Credential{RefreshToken: "hunter2-old"}, 401},
		"access token":              {"token", false, Credential{AccessToken: goodToken}, 200},
		"wrong access token":        {"token", false, Credential{AccessToken: "hunter2-old"}, 401},
		"basic":                     {"basic", false, good, 200},
		"wrong basic":               {"basic", false, bad, 401},
		"basic, but nobody to tell": {"basic", false, nobody, 401},
	} {
		r := newRegistry(t)
		r.auth = c.auth
		if !c.anonymous {
			r.user, r.password, r.refresh = "u", "hunter2", "hunter2-refresh"
		}
		r.addArtifact("v1", map[string]string{"x": "x"})
		client := r.client()
		client.Credentials = func(_ context.Context, registry string) (Credential, error) {
			if registry != r.host() {
				t.Errorf("%s: asked for %s", name, registry)
			}
			return c.credential, nil
		}
		_, err := client.Resolve(t.Context(), r.ref(":v1"))
		if c.want == 200 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if e, ok := errors.AsType[*StatusError](err); !ok || e.Status != c.want || e.What != "manifest v1" || leaks(err) {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(r.asked()); n > 3 {
			t.Errorf("%s: asked %d times: %v", name, n, r.asked())
		}
	}
}

// TestCredentialsFail: who has no credential may still be let in.
func TestCredentialsFail(t *testing.T) {
	for _, kind := range []string{"token", "basic"} {
		r := newRegistry(t)
		r.auth = kind
		r.addArtifact("v1", map[string]string{"x": "x"})
		client, busy := r.client(), &StatusError{Status: 429, RetryAfter: time.Second}
		client.Credentials = func(context.Context, string) (Credential, error) { return Credential{}, busy }
		if _, err := client.Resolve(t.Context(), r.ref(":v1")); err != nil && kind == "token" {
			t.Error(err)
		}
		r.user, r.password, client = "u", "p", r.client()
		client.Credentials = func(context.Context, string) (Credential, error) { return Credential{}, busy }
		_, err := client.Resolve(t.Context(), r.ref(":v1"))
		e, ok := errors.AsType[*RequestError](err)
		if status, _ := errors.AsType[*StatusError](err); !ok || status != busy || e.What != "manifest v1" || !strings.Contains(err.Error(), "there is no credential") {
			t.Errorf("%s: %v", kind, err)
		}
		client.Credentials = func(context.Context, string) (Credential, error) {
			return Credential{Username: "u"}, nil
		}
		if _, err = client.Resolve(t.Context(), r.ref(":v1")); err == nil || errors.Is(err, busy) {
			t.Errorf("%s: after that: %v", kind, err)
		}
	}
}

func TestCredentialsGivenUp(t *testing.T) {
	r := newRegistry(t)
	r.auth = "token"
	ctx, cancel := context.WithCancel(t.Context())
	client := r.client()
	client.Credentials = func(ctx context.Context, _ string) (Credential, error) {
		cancel()
		return Credential{}, ctx.Err()
	}
	if _, err := client.Resolve(ctx, r.ref(":v1")); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// TestTokenIsShared asks for many things at once with one token.
func TestTokenIsShared(t *testing.T) {
	r := newRegistry(t)
	r.auth = "token"
	l := r.addBlob("", "", []byte("x"))
	r.addArtifact("v1", map[string]string{"x": "x"})
	client := r.client()
	if _, err := client.Resolve(t.Context(), r.ref(":v1")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			in, _, err := client.Blob(t.Context(), r.ref(":v1"), l, 0)
			if err != nil {
				t.Error(err)
				return
			}
			in.Close()
		})
	}
	all.Wait()
	if log := r.asked(); len(log) != 13 || slices.Index(log, "GET /token") != 1 {
		t.Errorf("asked %d times: %v", len(log), log)
	}
}

func TestTokenEndsAndIsReplaced(t *testing.T) {
	r := newRegistry(t)
	r.auth = "token"
	r.addArtifact("v1", map[string]string{"x": "x"})
	client, expired := r.client(), false
	r.answer = func(w http.ResponseWriter, req *http.Request) bool {
		if expired && req.Header.Get("Authorization") != "" && req.URL.Path != "/token" {
			expired = false
			req.Header.Del("Authorization")
		}
		return false
	}
	for range 2 {
		if _, err := client.Resolve(t.Context(), r.ref(":v1")); err != nil {
			t.Fatal(err)
		}
		expired = true
	}
}

// TestStatus has each bad answer at each request, asked for once.
func TestStatus(t *testing.T) {
	for _, at := range []string{"/v2/team/tool/manifests/v1", "/v2/team/tool/blobs/" + someDigest.String(), "/token"} {
		for _, status := range []int{400, 403, 404, 418, 429, 500, 502, 503} {
			r := newRegistry(t)
			r.auth = "token"
			r.answer = func(w http.ResponseWriter, req *http.Request) bool {
				if req.URL.Path != at || req.Header.Get("Authorization") == "" && at != "/token" {
					return false
				}
				w.Header().Set("Retry-After", "7")
				refuse(w, status, "DENIED", "client with IP '1.2.3.4' is not allowed\x1b[31m "+strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
				return true
			}
			var err error
			if strings.Contains(at, "/blobs/") {
				_, _, err = r.client().Blob(t.Context(), r.ref(":v1"), v1.Descriptor{Digest: someDigest, Size: 5}, 0)
			} else {
				_, err = r.client().Resolve(t.Context(), r.ref(":v1"))
			}
			e, ok := errors.AsType[*StatusError](err)
			if !ok || e.Status != status || e.RetryAfter != 7*time.Second || e.Code != "DENIED" || e.Registry != r.host() || e.Repository != "team/tool" {
				t.Errorf("%s: %d: %v", at, status, err)
				continue
			}
			if !strings.Contains(err.Error(), "1.2.3.4") || strings.Contains(err.Error(), "\x1b") || leaks(err) || e.Temporary() != (status == 429 || status >= 500) {
				t.Errorf("%s: %d: %v", at, status, err)
			}
			if n := len(r.asked()); n > 3 {
				t.Errorf("%s: %d: asked %d times: %v", at, status, n, r.asked())
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ahead := now.Add(48 * time.Hour)
	for _, c := range []struct {
		text, date string
		want       time.Duration
	}{
		{"", "", 0}, {"120", "", 2 * time.Minute}, {"-5", "", 0}, {"soon", "", 0}, {"99999999999999999999", "", 0},
		{now.Add(time.Minute).Format(http.TimeFormat), "", time.Minute},
		{now.Add(-time.Minute).Format(http.TimeFormat), "", 0},
		{ahead.Add(time.Minute).Format(http.TimeFormat), ahead.Format(http.TimeFormat), time.Minute},
	} {
		h := http.Header{"Retry-After": {c.text}, "Date": {c.date}}
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("%q at %q: %s, want %s", c.text, c.date, got, c.want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	r := newRegistry(t)
	ref, client := r.ref(":v1"), r.client()
	r.Close()
	_, err := client.Resolve(t.Context(), ref)
	if e, ok := errors.AsType[*RequestError](err); !ok || e.Registry != ref.Registry || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error is %v", err)
	}
	r = newRegistry(t)
	_, err = (&Client{}).Resolve(t.Context(), r.ref(":v1"))
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("error is %v", err)
	}
}

// TestRealmIsGuarded has a registry that wants its credential carried elsewhere.
func TestRealmIsGuarded(t *testing.T) {
	for _, realm := range []string{"http://elsewhere.invalid/token", "https://169.254.169.254/token"} {
		r := newRegistry(t)
		r.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", realm))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		client := r.client()
		client.Credentials = func(context.Context, string) (Credential, error) {
			return Credential{Username: "u", Password: "hunter2"}, nil
		}
		if _, err := client.Resolve(t.Context(), r.ref(":v1")); err == nil || !strings.Contains(err.Error(), "realm") || leaks(err) {
			t.Errorf("%s: %v", realm, err)
		}
	}
}
