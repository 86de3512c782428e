package azure

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/oci"
)

// acrRegistry lets in whoever has a refresh token that is his.
type acrRegistry struct {
	*httptest.Server
	t       *testing.T
	refresh string
	// answer may take over a request: it returns true if it did.
	answer func(http.ResponseWriter, *http.Request) bool
}

// accessToken is what the registry's token service gives.
const accessToken = "access"

func newACRRegistry(t *testing.T) *acrRegistry {
	r := &acrRegistry{t: t}
	r.Server = httptest.NewUnstartedServer(r)
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.StartTLS()
	t.Cleanup(r.Close)
	return r
}

func (r *acrRegistry) client() *remote.Client { return &remote.Client{HTTP: r.Client(), Arch: "amd64"} }

func (r *acrRegistry) host() string { return strings.TrimPrefix(r.URL, "https://") }

func (r *acrRegistry) ref(tail string) oci.Reference {
	ref, err := oci.Parse(oci.Scheme + r.host() + "/team/tool" + tail)
	if err != nil {
		r.t.Fatal(err)
	}
	return ref
}

func (r *acrRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case r.answer != nil && r.answer(w, req):
	case req.URL.Path == "/token" && req.FormValue("refresh_token") == r.refresh:
		_ = json.NewEncoder(w).Encode(map[string]string{"access_token": accessToken})
	case req.URL.Path == "/token":
		deny(w, http.StatusUnauthorized, "UNAUTHORIZED", "bad credential "+req.FormValue("refresh_token"))
	case req.Header.Get("Authorization") != "Bearer "+accessToken:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="%s",scope="repository:team/tool:pull"`, r.URL, r.host()))
		deny(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	default:
		w.Header().Set("Content-Type", v1.MediaTypeImageManifest)
		_ = json.NewEncoder(w).Encode(v1.Manifest{MediaType: v1.MediaTypeImageManifest, ArtifactType: "application/x", Config: v1.DescriptorEmptyJSON, Layers: []v1.Descriptor{
			{MediaType: v1.MediaTypeImageLayer, Digest: digest.FromString("k"), Size: 1},
		}})
	}
}

func deny(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": message}}})
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(address, "https://"))
	return port
}

// acrWorld is a registry that knows an identity, and the metadata service that
// gives the identity its tokens.
type acrWorld struct {
	*acrRegistry
	metadata *httptest.Server
	// tokens are the identity's, by resource; takes is which one the registry
	// accepts.
	tokens map[string]string
	takes  string
	forms  []url.Values
	asked  []string
}

func newACR(t *testing.T) *acrWorld {
	w := &acrWorld{acrRegistry: newACRRegistry(t), takes: "hunter2-arm", tokens: map[string]string{
		"https://containerregistry.azure.net": "hunter2-acr", "https://management.azure.com/": "hunter2-arm",
	}}
	w.refresh = expiring(time.Now().Add(time.Hour))
	w.answer = w.exchange
	w.metadata = httptest.NewServer(http.HandlerFunc(w.identity))
	t.Cleanup(w.metadata.Close)
	return w
}

func expiring(exp time.Time) string {
	return "eyJ9." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, exp.Unix())) + ".hunter2"
}

func (w *acrWorld) acr() *ACR {
	return &ACR{HTTP: w.Client(), Metadata: w.metadata.URL, Suffixes: []string{".0.0.1:" + portOf(w.URL)}, ClientID: "some-id"}
}

func (w *acrWorld) identity(rw http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	w.asked = append(w.asked, q.Get("resource"))
	if req.Header.Get("Metadata") != "true" || req.URL.Path != tokenPath || q.Get("api-version") != "2018-02-01" || q.Get("client_id") != "some-id" {
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(rw, `{"error":"invalid_request","error_description":"Identity not found"}`)
		return
	}
	fmt.Fprintf(rw, `{"access_token":%q,"expires_in":"3599"}`, w.tokens[q.Get("resource")])
}

func (w *acrWorld) exchange(rw http.ResponseWriter, req *http.Request) bool {
	if req.URL.Path != "/oauth2/exchange" {
		return false
	}
	_ = req.ParseForm()
	w.forms = append(w.forms, req.PostForm)
	if req.PostForm.Get("access_token") != w.takes {
		deny(rw, http.StatusUnauthorized, "UNAUTHORIZED", "can't take "+req.PostForm.Get("access_token"))
		return true
	}
	fmt.Fprintf(rw, `{"refresh_token":%q}`, w.refresh)
	return true
}

func TestACR(t *testing.T) {
	w := newACR(t)
	acr, client := w.acr(), w.client()
	client.Credentials = acr.Credential
	acr.TenantID = "some-tenant"
	if _, err := client.Resolve(t.Context(), w.ref(":v1")); err != nil {
		t.Fatal(err)
	}
	want := url.Values{"grant_type": {"access_token"}, "service": {w.host()}, "access_token": {"hunter2-arm"}, "tenant": {"some-tenant"}}
	if diff := cmp.Diff(want, w.forms[len(w.forms)-1]); diff != "" || len(w.forms) != 2 {
		t.Errorf("%d exchanges: %s", len(w.forms), diff)
	}
	c, err := acr.Credential(t.Context(), w.host())
	if err != nil || c.Username != acrUser || c.RefreshToken.Reveal() != w.refresh || len(w.forms) != 2 {
		t.Errorf("%v, %v after %d exchanges", c, err, len(w.forms))
	}
	if text := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(text, "hunter2") {
		t.Errorf("the credential prints as %s", text)
	}
}

// TestACRIsAskedOnce has ten repositories that want a credential at once; one of
// those who wait gives up.
func TestACRIsAskedOnce(t *testing.T) {
	w := newACR(t)
	acr, hold := w.acr(), make(chan struct{})
	inner := w.metadata.Config.Handler
	w.metadata.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		<-hold
		inner.ServeHTTP(rw, req)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	first, gone := make(chan error), errors.New("given up")
	go func() {
		_, err := acr.Credential(ctx, w.host())
		first <- err
	}()
	cancel(gone)
	if err := <-first; !errors.Is(err, gone) {
		t.Errorf("who gave up got %v", err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := acr.Credential(t.Context(), w.host()); err != nil {
				t.Error(err)
			}
		})
	}
	close(hold)
	all.Wait()
	if len(w.forms) != 2 || len(w.asked) != 2 {
		t.Errorf("%d exchanges, asked for %v", len(w.forms), w.asked)
	}
}

func TestACRFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*acrWorld, *ACR)
		want   string
		status int
	}{
		"no such identity": {func(_ *acrWorld, a *ACR) { a.ClientID = "other" }, "invalid_request: Identity not found", 400},
		"not admitted":     {func(w *acrWorld, _ *ACR) { w.takes = "none" }, "token exchange: HTTP status 401", 401},
		"no metadata":      {func(w *acrWorld, _ *ACR) { w.metadata.Close() }, "instance metadata service: identity token", 0},
		"no token in it":   {func(w *acrWorld, _ *ACR) { w.refresh = "" }, "the answer has no refresh_token", 0},
		"busy": {func(w *acrWorld, _ *ACR) {
			w.answer = func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.Header().Set("Retry-After", "3")
				rw.WriteHeader(429)
				return true
			}
		}, "HTTP status 429", 429},
		"led elsewhere": {func(w *acrWorld, _ *ACR) {
			w.answer = func(rw http.ResponseWriter, req *http.Request) bool {
				http.Redirect(rw, req, "https://elsewhere.invalid/", http.StatusTemporaryRedirect)
				return true
			}
		}, "HTTP status 307", 307},
		"a page": {func(w *acrWorld, _ *ACR) {
			w.answer = func(rw http.ResponseWriter, _ *http.Request) bool {
				fmt.Fprint(rw, `hunter2`)
				return true
			}
		}, "the answer is no JSON object", 0},
	} {
		w := newACR(t)
		acr := w.acr()
		c.change(w, acr)
		_, err := acr.Credential(t.Context(), w.host())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
		e, ok := errors.AsType[*remote.StatusError](err)
		if ok != (c.status != 0) || ok && e.Status != c.status || c.status == 429 && e.RetryAfter != 3*time.Second {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(w.asked); n > 2 || c.status == 429 && n != 1 {
			t.Errorf("%s: asked %v", name, w.asked)
		}
	}
}

// TestCause has a registry that lets in nobody without a name, while the identity
// gets none: the error's cause is what stood between, not the registry.
func TestCause(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*acrWorld, *ACR)
		want   string // the subject's registry
		status int    // 0: *RequestError
	}{
		"no such identity": {func(_ *acrWorld, a *ACR) { a.ClientID = "other" }, remote.MetadataService, 400},
		"no metadata":      {func(w *acrWorld, _ *ACR) { w.metadata.Close() }, remote.MetadataService, 0},
		"not admitted":     {func(w *acrWorld, _ *ACR) { w.takes = "none" }, "", 401},
		"nothing wrong":    {func(_ *acrWorld, a *ACR) { a.Suffixes = nil }, "", 401},
	} {
		w := newACR(t)
		acr, client := w.acr(), w.client()
		c.change(w, acr)
		client.Credentials = acr.Credential
		_, err := client.Resolve(t.Context(), w.ref(":v1"))
		if c.want == "" {
			c.want = w.host()
		}
		refused, mute := remote.Cause(fmt.Errorf("it failed: %w", err))
		switch {
		case c.status == 0 && (refused != nil || mute == nil || mute.Registry != c.want):
			t.Errorf("%s: %v has the cause %v, %v", name, err, refused, mute)
		case c.status > 0 && (mute != nil || refused == nil || refused.Registry != c.want || refused.Status != c.status):
			t.Errorf("%s: %v has the cause %v, %v", name, err, refused, mute)
		}
	}
	if refused, mute := remote.Cause(errors.New("x")); refused != nil || mute != nil {
		t.Errorf("got %v, %v", refused, mute)
	}
}

// TestCauseOfGivingUp gives up while one of the two who are asked is mute: the
// error says which.
func TestCauseOfGivingUp(t *testing.T) {
	for _, mute := range []string{remote.MetadataService, "registry"} {
		w := newACR(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		over := errors.New("no data for a while")
		hang := func(http.ResponseWriter, *http.Request) bool {
			cancel(over)
			<-t.Context().Done()
			return true
		}
		w.t.Cleanup(w.CloseClientConnections)
		want := remote.MetadataService
		if mute == "registry" {
			want, w.answer = w.host(), func(rw http.ResponseWriter, req *http.Request) bool {
				return req.URL.Path == "/oauth2/exchange" && hang(rw, req)
			}
		} else {
			w.metadata.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) { hang(rw, req) })
		}
		client := w.client()
		client.Credentials = w.acr().Credential
		_, err := client.Resolve(ctx, w.ref(":v1"))
		if _, got := remote.Cause(err); got == nil || got.Registry != want || !errors.Is(err, over) {
			t.Errorf("%s is mute: %v", mute, err)
		}
	}
}

// TestACRIsForAzureOnly: the identity's token opens more than registries.
func TestACRIsForAzureOnly(t *testing.T) {
	acr := &ACR{Metadata: "http://127.0.0.1:1"}
	for _, registry := range []string{"docker.io", "azurecr.io", "x.azurecr.io.evil.example", "evilazurecr.io", "x.azurecr.io:5000", "quay.io"} {
		if c, err := acr.Credential(t.Context(), registry); err != nil || c != (remote.Credential{}) {
			t.Errorf("%s: %v, %v", registry, c, err)
		}
	}
	for _, registry := range []string{"x.azurecr.io", "X.AzureCR.cn", "a.privatelink.azurecr.us"} {
		if _, err := acr.Credential(t.Context(), registry); err == nil {
			t.Errorf("%s: the identity was not asked for", registry)
		}
	}
	acr.Suffixes = []string{".azurecr.example"}
	for _, registry := range []string{"x.azurecr.io", "x.azurecr.example"} {
		if _, err := acr.Credential(t.Context(), registry); err == nil {
			t.Errorf("%s: the identity was not asked for", registry)
		}
	}
	for _, suffixes := range [][]string{{""}, {"example"}, {}} {
		acr.Suffixes = suffixes
		if _, err := acr.Credential(t.Context(), "any.example"); err != nil {
			t.Errorf("%q: %v", suffixes, err)
		}
	}
}

func TestMetadataTakesNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	if p := registryMetadata.Transport.(*http.Transport).Proxy; p != nil {
		t.Error("there is a proxy function")
	}
	w := newACR(t)
	if _, err := w.acr().Credential(t.Context(), w.host()); err != nil {
		t.Error(err)
	}
}

func TestGoodUntil(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for token, want := range map[string]time.Duration{
		expiring(now.Add(3 * time.Hour)): 3*time.Hour - 5*time.Minute,
		"opaque":                         10 * time.Minute,
		"a.b.c":                          10 * time.Minute,
		"a.bnVsbA.c":                     10 * time.Minute,
	} {
		if got := goodUntil(token, now).Sub(now); got != want {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
}
