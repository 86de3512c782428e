package azure

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	tenant = "11111111-1111-1111-1111-111111111111"
	client = "22222222-2222-2222-2222-222222222222"
	other  = "33333333-3333-3333-3333-333333333333"
)

// jwt is a token with these claims and no signature that anybody could check.
func jwt(claims map[string]any) string {
	b, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(b) + ".c2ln"
}

func good(now time.Time, life time.Duration) map[string]any {
	return map[string]any{"aud": azureidentity.AKS, "tid": tenant, "exp": now.Add(life).Unix()}
}

// service is a server on loopback that remembers what it is asked.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	forms    []map[string][]string
}

// serve answers the n-th request with the n-th answer, and the last one from then on.
func serve(t testing.TB, answers ...http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		s.mu.Lock()
		n := min(len(s.requests), len(answers)-1)
		s.requests, s.forms = append(s.requests, r), append(s.forms, r.PostForm)
		s.mu.Unlock()
		answers[n](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func give(token string) http.HandlerFunc {
	return say(http.StatusOK, fmt.Sprintf(`{"access_token":%q,"expires_on":"1","token_type":"Bearer"}`, token))
}

// hintOf is what a person is told to do.
func hintOf(err error) string {
	if e, ok := errors.AsType[*exitcode.Error](err); ok {
		return e.Hint()
	}
	return ""
}

const keyFile = challengeDir + "/a.key"

// machine is one on which the agent of Azure Arc is installed.
func machine() *memory.Host {
	m := memory.New()
	m.Put("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nhimds:x:977:977::/:/bin/false\n", 0o644)
	m.PutOwned(keyFile, "the key\n", host.Attributes{Mode: 0o640, UID: 977, GID: 977})
	return m
}

func sourceAt(h Host, s *service) *Source {
	return &Source{host: h, endpoints: endpoints{instance: s.URL, arc: s.URL + tokenPath, outward: outward, pause: time.Millisecond}}
}

func managed() *desired.AzureIdentity {
	return &desired.AzureIdentity{Kind: desired.AzureManagedIdentity, TenantID: tenant, ClientID: client, ServerID: azureidentity.AKS}
}
