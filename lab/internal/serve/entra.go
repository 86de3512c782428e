package serve

import (
	"cmp"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Entra is a Microsoft Entra ID with one tenant: a token endpoint for applications, and
// what an API server reads to verify the tokens. Use NewEntra.
//
// Source of its rules: the public documentation of the Microsoft identity platform.
type Entra struct {
	RequestLog
	url, tenant string
	handler     http.Handler
	tokens      *tokenIssuer

	mu           sync.Mutex
	applications map[string]Application
}

// Application may have tokens with its secret.
type Application struct {
	ClientID, ObjectID, Secret string
	// Lifetime is that of its tokens; zero is an hour.
	Lifetime time.Duration
}

// NewEntra is one at https://host:port.
func NewEntra(url, tenant string) *Entra {
	e := &Entra{url: url, tenant: tenant, tokens: newTokenIssuer(), applications: map[string]Application{}}
	mux := http.NewServeMux()
	at := "/" + tenant
	mux.HandleFunc("GET "+at+"/v2.0/.well-known/openid-configuration", e.discovery)
	mux.HandleFunc("GET "+at+"/discovery/v2.0/keys", e.keys)
	mux.HandleFunc("POST "+at+"/oauth2/v2.0/token", e.token)
	e.handler = e.watch(mux)
	return e
}

// Issuer is who tokens say they are of.
func (e *Entra) Issuer() string { return e.url + "/" + e.tenant + "/v2.0" }

// AddApplication makes an application known.
func (e *Entra) AddApplication(a Application) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.applications[a.ClientID] = a
}

// Give is a token of an object for an audience.
func (e *Entra) Give(object, client, audience string, life time.Duration) (string, error) {
	now := time.Now()
	return e.tokens.sign(map[string]any{
		"iss": e.Issuer(), "tid": e.tenant, "aud": audience, "oid": object, "sub": object, "appid": client,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(life).Unix(),
	})
}

func (e *Entra) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.handler.ServeHTTP(w, r) }

func (e *Entra) discovery(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": e.Issuer(), "jwks_uri": e.url + "/" + e.tenant + "/discovery/v2.0/keys",
		"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"pairwise"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (e *Entra) keys(w http.ResponseWriter, _ *http.Request) {
	key := e.tokens.key().PublicKey
	encode := base64.RawURLEncoding.EncodeToString
	writeJSON(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "use": "sig", "alg": "RS256", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}}})
}

func (e *Entra) token(w http.ResponseWriter, r *http.Request) {
	scope, isDefault := strings.CutSuffix(r.PostFormValue("scope"), "/.default")
	if r.PostFormValue("grant_type") != "client_credentials" || !isDefault {
		writeOAuthError(w, "invalid_request", "AADSTS900144: The request body must contain grant_type and scope.")
		return
	}
	e.mu.Lock()
	a, ok := e.applications[r.PostFormValue("client_id")]
	e.mu.Unlock()
	if !ok {
		writeOAuthError(w, "unauthorized_client", "AADSTS700016: Application was not found in the directory.")
		return
	}
	if subtle.ConstantTimeCompare([]byte(a.Secret), []byte(r.PostFormValue("client_secret"))) != 1 {
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."})
		return
	}
	life := cmp.Or(a.Lifetime, time.Hour)
	token, err := e.Give(a.ObjectID, a.ClientID, scope, life)
	if err != nil {
		http.Error(w, fmt.Sprint(err), http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": int(life.Seconds()), "access_token": token, "ext_expires_in": strconv.Itoa(int(life.Seconds()))})
}
