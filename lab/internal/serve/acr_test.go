package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	acrHost   = "site.azurecr.lab.test"
	storeHost = "site.blob.lab.test"
	armTokens = "https://management.azure.com/"
	acrTokens = "https://containerregistry.azure.net"
)

// azure is a registry with an artifact, its store of blobs and the service that
// knows one identity with pulls and one without.
type azure struct {
	t        *testing.T
	acr      *ACR
	metadata *Metadata
	artifact Pushed
}

func newAzure(t *testing.T) *azure {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tool.tar.gz")
	if err := os.WriteFile(file, []byte("an archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, m := NewRegistry(), NewMetadata(Instance{})
	pushed, err := held.PushFile(t.Context(), "tools/tool:v1", "application/x-tool", "application/gzip", file)
	if err != nil {
		t.Fatal(err)
	}
	m.AddIdentity(Identity{ClientID: "puller", ObjectID: "o1", ResourceID: "/r/1"})
	m.AddIdentity(Identity{ClientID: "stranger", ObjectID: "o2", ResourceID: "/r/2"})
	a := &azure{t, NewACR(acrHost, storeHost, held, m), m, pushed}
	a.acr.Grant("puller")
	return a
}

// RoundTrip implements http.RoundTripper, without connections.
func (a *azure) RoundTrip(r *http.Request) (*http.Response, error) {
	handlers := map[string]http.Handler{acrHost: a.acr, storeHost: a.acr.Blobs, "169.254.169.254": a.metadata}
	return inProcess{handlers[r.URL.Host]}.RoundTrip(r)
}

// ask sends a form, or a GET if it is nil, and returns status, headers, body.
func (a *azure) ask(address string, form url.Values, header ...string) (int, http.Header, string) {
	a.t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(a.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		a.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := a.RoundTrip(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

// field is one of a JSON object; "" if it is none.
func field(body, name string) string {
	var object map[string]any
	_ = json.Unmarshal([]byte(body), &object)
	text, _ := object[name].(string)
	return text
}

func (a *azure) identityToken(client, resource string) string {
	q := url.Values{"api-version": {"2018-02-01"}, "resource": {resource}, "client_id": {client}}
	_, _, body := a.ask("http://169.254.169.254/metadata/identity/oauth2/token?"+q.Encode(), nil, "Metadata", "true")
	return field(body, "access_token")
}

func (a *azure) exchange(token string) (int, string) {
	status, _, body := a.ask("https://"+acrHost+"/oauth2/exchange", url.Values{"grant_type": {"access_token"}, "service": {acrHost}, "access_token": {token}})
	return status, field(body, "refresh_token")
}

func (a *azure) access(refresh, scope string) (int, string) {
	status, _, body := a.ask("https://"+acrHost+"/oauth2/token", url.Values{"grant_type": {"refresh_token"}, "service": {acrHost}, "scope": {scope}, "refresh_token": {refresh}})
	return status, field(body, "access_token")
}

func TestACRPull(t *testing.T) {
	a := newAzure(t)
	manifest := "https://" + acrHost + "/v2/tools/tool/manifests/v1"
	status, header, body := a.ask(manifest, nil)
	want := `Bearer realm="https://site.azurecr.lab.test/oauth2/token",service="site.azurecr.lab.test",scope="repository:tools/tool:pull"`
	if got := header.Get("WWW-Authenticate"); status != 401 || got != want || !strings.Contains(body, `"UNAUTHORIZED"`) {
		t.Fatalf("%d, %s, %s", status, got, body)
	}
	_, refresh := a.exchange(a.identityToken("puller", acrTokens))
	_, token := a.access(refresh, "repository:tools/tool:pull,push")
	status, header, body = a.ask(manifest, nil, "Authorization", "Bearer "+token)
	if status != 200 || header.Get("Docker-Content-Digest") != a.artifact.Manifest {
		t.Fatalf("%d, %v, %s", status, header, body)
	}
	var m struct {
		ArtifactType string
		Config       struct{ MediaType string }
		Layers       []struct {
			MediaType, Digest string
			Size              int64
			Annotations       map[string]string
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || len(m.Layers) != 1 || m.ArtifactType != "application/x-tool" || m.Config.MediaType != "application/vnd.oci.empty.v1+json" {
		t.Fatalf("%v: %s", err, body)
	}
	if l := m.Layers[0]; l.Digest != a.artifact.Blob || l.Size != 10 || l.MediaType != "application/gzip" || l.Annotations[titleOfFile] != "tool.tar.gz" {
		t.Errorf("layer %+v, want %+v", l, a.artifact)
	}
	status, header, _ = a.ask("https://"+acrHost+"/v2/tools/tool/blobs/"+a.artifact.Blob, nil, "Authorization", "Bearer "+token)
	there := header.Get("Location")
	if status != 307 || !strings.HasPrefix(there, "https://"+storeHost+a.acr.Blobs.PathOf(a.artifact.Blob)+"?") {
		t.Fatalf("%d to %s", status, there)
	}
	for name, c := range map[string]struct {
		address string
		header  []string
		status  int
		want    string
	}{
		"whole":           {there, nil, 200, "an archive"},
		"the rest":        {there, []string{"Range", "bytes=3-"}, 206, "archive"},
		"two credentials": {there, []string{"Authorization", "Bearer " + token}, 400, "InvalidAuthenticationInfo"},
		"not signed":      {"https://" + storeHost + a.acr.Blobs.PathOf(a.artifact.Blob), nil, 403, "AuthenticationFailed"},
		"another's":       {strings.Replace(there, a.artifact.Blob[7:], a.artifact.Manifest[7:], 1), nil, 403, "AuthenticationFailed"},
	} {
		if status, _, body := a.ask(c.address, nil, c.header...); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// TestACRRefuses has all that is no way in.
func TestACRRefuses(t *testing.T) {
	a := newAzure(t)
	signed := func(claims map[string]any) string {
		token, err := a.metadata.tokens.sign(claims)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	good := a.identityToken("puller", acrTokens)
	soon, past := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	for name, c := range map[string]struct {
		token  string
		status int
	}{
		"for registries": {good, 200},
		"for ARM":        {a.identityToken("puller", armTokens), 200},
		"for a vault":    {a.identityToken("puller", "https://vault.azure.net"), 401},
		"no role":        {a.identityToken("stranger", acrTokens), 401},
		"ended":          {signed(map[string]any{"aud": acrTokens, "appid": "puller", "nbf": past, "exp": past}), 401},
		"not yet":        {signed(map[string]any{"aud": acrTokens, "appid": "puller", "nbf": soon, "exp": soon + 1}), 401},
		"changed":        {good[:len(good)-9] + "AAAAAAAAA", 401},
		"no token":       {"", 401},
	} {
		if status, refresh := a.exchange(c.token); status != c.status || (refresh != "") != (status == 200) {
			t.Errorf("exchange of a token %s: %d", name, status)
		}
	}
	_, refresh := a.exchange(good)
	_, access := a.access(refresh, "repository:tools/tool:pull")
	for name, c := range map[string]struct {
		token, scope string
		status       int
	}{
		"pull": {refresh, "repository:tools/tool:pull", 200}, "push": {refresh, "repository:tools/tool:push", 401},
		"catalog": {refresh, "registry:catalog:*", 401}, "nothing": {refresh, "", 401},
		"identity's": {good, "repository:tools/tool:pull", 401}, "access": {access, "repository:tools/tool:pull", 401},
	} {
		if status, _ := a.access(c.token, c.scope); status != c.status {
			t.Errorf("token for %s: %d", name, status)
		}
	}
	base := "https://" + acrHost
	for name, c := range map[string]struct {
		path, token string
		want        []any // status, error of the challenge
	}{
		"other repository": {"/v2/tools/other/manifests/v1", access, []any{401, "insufficient_scope"}},
		"refresh token":    {"/v2/tools/tool/manifests/v1", refresh, []any{401, "invalid_token"}},
		"identity's token": {"/v2/tools/tool/manifests/v1", good, []any{401, "invalid_token"}},
		"root":             {"/v2/", access, []any{200, ""}},
		"no such tag":      {"/v2/tools/tool/manifests/v2", access, []any{404, ""}},
		"no such blob":     {"/v2/tools/tool/blobs/" + a.artifact.Manifest, access, []any{404, ""}},
	} {
		status, header, _ := a.ask(base+c.path, nil, "Authorization", "Bearer "+c.token)
		_, reason, _ := strings.Cut(header.Get("WWW-Authenticate"), `error="`)
		if diff := cmp.Diff(c.want, []any{status, strings.TrimSuffix(reason, `"`)}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if status, _, _ := a.ask(base+"/v2/tools/tool/blobs/uploads/", url.Values{}, "Authorization", "Bearer "+access); status != 401 {
		t.Errorf("push: %d", status)
	}
	if n, _ := a.acr.Count("/oauth2/exchange"); n != 9 {
		t.Errorf("%d exchanges in the log", n)
	}
}

// TestACRTakesPasswords: old clients know no refresh tokens.
func TestACRTakesPasswords(t *testing.T) {
	a := newAzure(t)
	_, refresh := a.exchange(a.identityToken("puller", armTokens))
	address := "https://" + acrHost + "/oauth2/token?service=" + acrHost + "&scope=repository:tools/tool:pull"
	for user, want := range map[string]int{tokenUser: 200, "puller": 401, "": 401} {
		req := &http.Request{Header: http.Header{}}
		if user != "" {
			req.SetBasicAuth(user, refresh)
		}
		if status, _, body := a.ask(address, nil, "Authorization", req.Header.Get("Authorization")); status != want || (field(body, "access_token") != "") != (want == 200) {
			t.Errorf("as %q: %d", user, status)
		}
	}
}
