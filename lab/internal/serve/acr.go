package serve

import (
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// ACR stands before a Registry and is to its clients as Azure Container Registry
// is: it lets in whoever has a token, gives tokens to managed identities that
// were granted pulls, and leads elsewhere for blobs. Nobody can push through it.
// Use NewACR.
//
// Source of its rules: the public documentation of Azure Container Registry
// (authentication with a managed identity, AAD-OAuth) and of the token
// authentication of the distribution specification.
type ACR struct {
	RequestLog
	// Blobs is where the registry leads for blobs.
	Blobs *BlobStore

	host       string
	held       *Registry
	identities *Metadata
	tokens     *tokenIssuer
	handler    http.Handler

	mu      sync.Mutex
	granted map[string]bool // by client ID
}

// NewACR is a registry with the name host that leads to the name store for
// blobs; both are to be served on port 443. It knows the identities of a
// metadata service and has granted them nothing.
func NewACR(host, store string, held *Registry, identities *Metadata) *ACR {
	a := &ACR{
		Blobs: newBlobStore(store, held), host: host, held: held, identities: identities,
		tokens: newTokenIssuer(), granted: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth2/exchange", a.exchange)
	mux.HandleFunc("POST /oauth2/token", a.byForm)
	mux.HandleFunc("GET /oauth2/token", a.byQuery)
	mux.HandleFunc("/v2/", a.v2)
	a.handler = a.watch(mux)
	return a
}

// Grant lets an identity pull everything, as the role AcrPull does.
func (a *ACR) Grant(clientID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.granted[clientID] = true
}

func (a *ACR) mayPull(clientID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.granted[clientID]
}

func (a *ACR) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

var inRepository = regexp.MustCompile(`^/v2/(.+)/(manifests|blobs|tags)/([^/]+)/?$`)

// v2 is the registry itself.
func (a *ACR) v2(w http.ResponseWriter, r *http.Request) {
	need, at := access{}, inRepository.FindStringSubmatch(r.URL.Path)
	if at != nil {
		need = access{Type: "repository", Name: at[1], Actions: []string{"pull"}}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		need.Actions = []string{"pull", "push"}
	}
	if reason := a.refusal(r, need); reason != "" {
		a.challenge(w, need, reason)
		return
	}
	if at != nil && at[2] == "blobs" && r.Method == http.MethodGet && a.lead(w, r, at[3]) {
		return
	}
	a.held.backend.ServeHTTP(w, r)
}

// challenge says to whom to go for a token.
func (a *ACR) challenge(w http.ResponseWriter, need access, reason string) {
	text := fmt.Sprintf(`Bearer realm="https://%s/oauth2/token",service="%[1]s"`, a.host)
	if need.Name != "" {
		text += fmt.Sprintf(`,scope=%q`, need)
	}
	if reason != missingToken {
		text += fmt.Sprintf(`,error=%q`, reason)
	}
	w.Header().Set("WWW-Authenticate", text)
	unauthorized(w)
}

func unauthorized(w http.ResponseWriter) {
	registryError(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
}

// registryError is an error as the distribution specification has it.
func registryError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	writeJSON(w, status, map[string]any{"errors": []any{map[string]any{"code": code, "message": message, "detail": nil}}})
}

// lead sends a client to the store of blobs; false if there is no such blob.
func (a *ACR) lead(w http.ResponseWriter, r *http.Request, digest string) bool {
	h, err := v1.NewHash(digest)
	if err != nil {
		return false
	}
	if _, err := a.held.blobs.(registry.BlobStatHandler).Stat(r.Context(), "", h); err != nil {
		return false
	}
	w.Header().Set("Docker-Content-Digest", digest)
	http.Redirect(w, r, a.Blobs.signed(h, time.Now().Add(signatureLifetime)), http.StatusTemporaryRedirect)
	return true
}
