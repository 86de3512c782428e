package azure

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

func arc() *desired.AzureIdentity {
	return &desired.AzureIdentity{Kind: desired.AzureArc, TenantID: tenant, ServerID: azureidentity.AKS}
}

func challenge(header string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Www-Authenticate", header)
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func TestArcToken(t *testing.T) {
	m := machine()
	token := jwt(good(m.Now(), time.Hour))
	s := serve(t, challenge("Basic realm="+keyFile), give(token))
	got, err := sourceAt(m, s).ForServer(context.Background(), arc())
	if err != nil || got.Text.Reveal() != token {
		t.Fatalf("%+v, %v", got, err)
	}
	first, second := s.requests[0], s.requests[1]
	want := tokenPath + "?api-version=2020-06-01&resource=" + azureidentity.AKS
	if s.asked() != 2 || first.URL.String() != want || second.URL.String() != want || first.Header.Get("Authorization") != "" ||
		second.Header.Get("Authorization") != "Basic the key" || second.Header.Get("Metadata") != "true" {
		t.Errorf("%s %v\n%s %v", first.URL, first.Header, second.URL, second.Header)
	}
}

// An agent that is busy in the midst of it gets the content of another file: the first may
// have been good for one request.
func TestArcBusy(t *testing.T) {
	m := machine()
	const second = challengeDir + "/b.key"
	put(m, second, "the next key", 0)
	token := jwt(good(m.Now(), time.Hour))
	s := serve(t, say(503, ""), challenge("Basic realm="+keyFile), say(429, ""), challenge("Basic realm="+second), give(token))
	got, err := sourceAt(m, s).ForServer(context.Background(), arc())
	if err != nil || got.Text.Reveal() != token {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{"", "", "Basic the key", "", "Basic the next key"} {
		if i >= s.asked() || s.requests[i].Header.Get("Authorization") != want {
			t.Errorf("request %d of %d does not show %q", i, s.asked(), want)
		}
	}
}

// Whoever took the agent's port gets no file but the agent's own.
func TestArcChallenge(t *testing.T) {
	for name, tc := range map[string]struct {
		header  string
		arrange func(*memory.Host)
		want    string
	}{
		"quoted":            {`Basic realm="` + keyFile + `"`, nil, ""},
		"lower case":        {"basic Realm=" + keyFile, nil, ""},
		"root's":            {"Basic realm=" + keyFile, func(m *memory.Host) { put(m, keyFile, "k", 0) }, ""},
		"another directory": {"Basic realm=/etc/shadow.key", func(m *memory.Host) { put(m, "/etc/shadow.key", "x", 0) }, "which is no file"},
		"a way out":         {"Basic realm=" + challengeDir + "/../../../../etc/a.key", nil, "which is no file"},
		"below":             {"Basic realm=" + challengeDir + "/d/a.key", nil, "which is no file"},
		"relative":          {"Basic realm=a.key", nil, "which is no file"},
		"another suffix":    {"Basic realm=" + challengeDir + "/a.txt", func(m *memory.Host) { put(m, challengeDir+"/a.txt", "x", 0) }, "which is no file"},
		"too large":         {"Basic realm=" + keyFile, func(m *memory.Host) { put(m, keyFile, strings.Repeat("k", maxChallenge+1), 0) }, "more than 4096"},
		"just not":          {"Basic realm=" + keyFile, func(m *memory.Host) { put(m, keyFile, strings.Repeat("k", maxChallenge), 0) }, ""},
		"a link":            {"Basic realm=" + challengeDir + "/l.key", func(m *memory.Host) { m.PutLink(keyFile, challengeDir+"/l.key", 0) }, "no regular file"},
		"a directory":       {"Basic realm=" + challengeDir + "/d.key", func(m *memory.Host) { m.PutDir(challengeDir + "/d.key") }, "no regular file"},
		"somebody's":        {"Basic realm=" + keyFile, func(m *memory.Host) { put(m, keyFile, "k", 1000) }, "is of user 1000"},
		"no such user":      {"Basic realm=" + keyFile, func(m *memory.Host) { m.Put("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", 0o644) }, "is of user 977"},
		"empty":             {"Basic realm=" + keyFile, func(m *memory.Host) { put(m, keyFile, "\n", 0) }, "holds no key"},
		"two lines":         {"Basic realm=" + keyFile, func(m *memory.Host) { put(m, keyFile, "a\r\nHost: b", 0) }, "holds no key"},
		"absent":            {"Basic realm=" + challengeDir + "/b.key", nil, "no such file"},
		"another scheme":    {"Bearer realm=" + keyFile, nil, "has no header"},
		"no realm":          {"Basic", nil, "has no header"},
		"nothing":           {"", nil, "has no header"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			if tc.arrange != nil {
				tc.arrange(m)
			}
			s := serve(t, challenge(tc.header), give(jwt(good(m.Now(), time.Hour))))
			_, err := sourceAt(m, s).ForServer(context.Background(), arc())
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if s.asked() != 1 {
				t.Error("it was asked again, with a file's content")
			}
		})
	}
}

func put(m *memory.Host, p, content string, uid int) {
	m.PutOwned(p, content, host.Attributes{Mode: 0o600, UID: uid})
}

// A file that is exchanged between the look at it and the read is not shown.
func TestArcChallengeExchanged(t *testing.T) {
	m := machine()
	s := serve(t, challenge("Basic realm="+keyFile), give(jwt(good(m.Now(), time.Hour))))
	source := sourceAt(exchanging{m}, s)
	if _, err := source.ForServer(context.Background(), arc()); err == nil || !strings.Contains(err.Error(), "changed while it was read") || s.asked() != 1 {
		t.Errorf("%v after %d requests", err, s.asked())
	}
}

// exchanging is a machine on which somebody replaces each file that is opened.
type exchanging struct{ *memory.Host }

func (e exchanging) Open(p string) (host.ReadFile, error) {
	if err := host.WriteFile(e.Host, p, []byte("other"), host.Attributes{Mode: 0o600}); err != nil {
		return nil, err
	}
	return e.Host.Open(p)
}

// Only 401 begins the exchange, and only 200 ends it.
func TestArcStatus(t *testing.T) {
	m := machine()
	token := give(jwt(good(m.Now(), time.Hour)))
	elsewhere := serve(t, token)
	away := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+tokenPath, http.StatusTemporaryRedirect)
	}
	for name, tc := range map[string]struct {
		answers []http.HandlerFunc
		want    string
	}{
		"a token at once":       {[]http.HandlerFunc{token}, "it must answer 401"},
		"a redirect":            {[]http.HandlerFunc{away}, "HTTP status 307"},
		"a redirect at the end": {[]http.HandlerFunc{challenge("Basic realm=" + keyFile), away}, "HTTP status 307"},
		"403":                   {[]http.HandlerFunc{say(403, `{"error":"forbidden"}`)}, "HTTP status 403: forbidden"},
		"201 at the end":        {[]http.HandlerFunc{challenge("Basic realm=" + keyFile), say(201, `{"access_token":"x"}`)}, "HTTP status 201"},
		"refused":               {[]http.HandlerFunc{challenge("Basic realm=" + keyFile)}, "HTTP status 401"},
	} {
		_, err := sourceAt(m, serve(t, tc.answers...)).ForServer(context.Background(), arc())
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if elsewhere.asked() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestLoopback(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:40342" + tokenPath:        "http://127.0.0.1:40342" + tokenPath,
		"http://localhost:40342" + tokenPath:        "http://127.0.0.1:40342" + tokenPath,
		"http://LOCALHOST" + tokenPath:              "http://127.0.0.1" + tokenPath,
		"http://[::1]:40342" + tokenPath:            "http://[::1]:40342" + tokenPath,
		"https://127.0.0.1:40342" + tokenPath:       "",
		"http://10.0.0.1:40342" + tokenPath:         "",
		"http://169.254.169.254" + tokenPath:        "",
		"http://localhost.example" + tokenPath:      "",
		"http://a@127.0.0.1" + tokenPath:            "",
		"http://127.0.0.1" + tokenPath + "?a=b":     "",
		"http://127.0.0.1/other":                    "",
		"http://127.0.0.1:40342" + tokenPath + "#x": "",
		"%": "",
		"":  "",
	} {
		got, err := loopback(endpoint)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", endpoint, got, err)
		}
	}
}

// What a name resolves to is looked at again when the connection is made.
func TestLoopbackOnly(t *testing.T) {
	for address, ok := range map[string]bool{"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"10.0.0.1:1": false, "[fe80::1]:1": false, "0.0.0.0:1": false, "x": false} {
		if err := loopbackOnly("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if direct(loopbackOnly).Transport.(*http.Transport).Proxy != nil {
		t.Error("there is a proxy")
	}
}

func FuzzChallengePath(f *testing.F) {
	f.Add("Basic realm=" + keyFile)
	f.Add(`Basic realm="x", charset="UTF-8"`)
	f.Fuzz(func(t *testing.T, header string) {
		p, err := challengePath(http.Header{"Www-Authenticate": {header}})
		if err == nil && !strings.Contains(header, p) {
			t.Errorf("%q of %q", p, header)
		}
	})
}

func FuzzUserID(f *testing.F) {
	f.Add("root:x:0:0:root:/root:/bin/sh\nhimds:x:977:977::/:/bin/false\n", "himds")
	f.Fuzz(func(t *testing.T, text, name string) {
		if uid, ok := userID(text, name); ok && (uid < 0 || !strings.Contains(text, name)) {
			t.Errorf("%d for %q", uid, name)
		}
	})
}
