package serve

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Identity is a managed identity that the machines may use.
type Identity struct {
	ClientID   string
	ObjectID   string
	ResourceID string
}

// AddIdentity makes an identity known by each of its three names. The first
// one is also the answer where a request names none.
func (m *Metadata) AddIdentity(i Identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{"client_id=" + i.ClientID, "object_id=" + i.ObjectID, "msi_res_id=" + i.ResourceID, "mi_res_id=" + i.ResourceID} {
		m.identity[name] = i
	}
	if _, ok := m.identity[""]; !ok {
		m.identity[""] = i
	}
}

// IssuedBy has tokens be of a tenant, as the real ones are: whoever trusts it takes
// them.
func (m *Metadata) IssuedBy(e *Entra) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entra = e
}

// sign is a token for an identity.
func (m *Metadata) sign(i Identity, resource string, now, expires time.Time) (string, error) {
	m.mu.Lock()
	entra := m.entra
	m.mu.Unlock()
	if entra != nil {
		return entra.Give(i.ObjectID, i.ClientID, resource, expires.Sub(now))
	}
	return m.tokens.sign(map[string]any{
		"aud": resource, "appid": i.ClientID, "oid": i.ObjectID, "xms_mirid": i.ResourceID,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": expires.Unix(),
	})
}

// TokenKey verifies the access tokens (RS256).
func (m *Metadata) TokenKey() *rsa.PublicKey { return &m.tokens.key().PublicKey }

// tokenLifetime is that of real tokens.
const tokenLifetime = 24 * time.Hour

func (m *Metadata) token(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Query().Get("resource")
	if resource == "" {
		writeOAuthError(w, "invalid_resource", "AADSTS50000: the resource parameter is missing")
		return
	}
	identity, ok := m.requested(r)
	if !ok {
		writeOAuthError(w, "invalid_request", "Identity not found")
		return
	}
	now := time.Now()
	expires := now.Add(tokenLifetime)
	token, err := m.sign(identity, resource, now, expires)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	// All values are strings, numbers too.
	writeJSON(w, http.StatusOK, map[string]string{
		"access_token": token, "client_id": identity.ClientID, "token_type": "Bearer", "resource": resource,
		"expires_in": seconds(tokenLifetime), "ext_expires_in": seconds(tokenLifetime),
		"expires_on": strconv.FormatInt(expires.Unix(), 10), "not_before": strconv.FormatInt(now.Unix(), 10),
	})
}

func (m *Metadata) requested(r *http.Request) (Identity, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	query := r.URL.Query()
	for _, key := range []string{"client_id", "object_id", "msi_res_id", "mi_res_id"} {
		if value := query.Get(key); value != "" {
			i, ok := m.identity[key+"="+value]
			return i, ok
		}
	}
	i, ok := m.identity[""]
	return i, ok
}

func writeOAuthError(w http.ResponseWriter, code, description string) {
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": description})
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// attested answers with a document about the machine, signed by this service.
// The real one is PKCS #7 under a public certificate; for a client both are
// opaque text to hand on, and here it is a JWT under TokenKey.
func (m *Metadata) attested(w http.ResponseWriter, r *http.Request) {
	c := m.of(r).Compute
	now := time.Now()
	signature, err := m.tokens.sign(map[string]any{
		"nonce": r.URL.Query().Get("nonce"), "vmId": c.VMID, "subscriptionId": c.SubscriptionID,
		"timeStamp": map[string]string{"createdOn": dated(now), "expiresOn": dated(now.Add(6 * time.Hour))},
	})
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"encoding": "pkcs7", "signature": signature})
}

func dated(t time.Time) string { return t.UTC().Format("01/02/06 15:04:05 -0700") }

type tokenIssuer struct{ key func() *rsa.PrivateKey }

// newTokenIssuer makes its key when the first token is wanted: that takes a
// while.
func newTokenIssuer() *tokenIssuer {
	return &tokenIssuer{key: sync.OnceValue(func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err) // crypto/rand never fails
		}
		return key
	})}
}

func (t *tokenIssuer) sign(claims any) (string, error) {
	body, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encode claims: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(body)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, t.key(), crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return text + "." + encode(signature), nil
}

// lifetime is between when a token is good, in seconds since 1970.
type lifetime struct {
	NotBefore int64 `json:"nbf"`
	Expires   int64 `json:"exp"`
}

func lasting(d time.Duration) lifetime {
	now := time.Now()
	return lifetime{now.Unix(), now.Add(d).Unix()}
}

func (l lifetime) inForce(now time.Time) bool {
	return now.Unix() >= l.NotBefore && now.Unix() < l.Expires
}

// verify reads the claims of a token that the owner of a key has signed.
func verify(key *rsa.PublicKey, token string, claims any) error {
	text, last, found := cutLast(token, ".")
	signature, err := base64.RawURLEncoding.DecodeString(last)
	if err != nil || !found {
		return fmt.Errorf("read token: no signature")
	}
	digest := sha256.Sum256([]byte(text))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature); err != nil {
		return fmt.Errorf("verify token: %w", err)
	}
	_, payload, _ := strings.Cut(text, ".")
	body, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return fmt.Errorf("read token: %w", err)
	}
	return json.Unmarshal(body, claims)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
