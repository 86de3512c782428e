package serve

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// How long the registry's tokens are good for.
const (
	refreshLifetime = 3 * time.Hour
	accessLifetime  = 75 * time.Minute
)

// access is what a token allows, or a request needs.
type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

// String is a scope: repository:team/tool:pull.
func (a access) String() string { return a.Type + ":" + a.Name + ":" + strings.Join(a.Actions, ",") }

// parseAccess reads a scope. Names may hold colons (a host's port).
func parseAccess(scope string) (access, bool) {
	kind, rest, ok := strings.Cut(scope, ":")
	i := strings.LastIndexByte(rest, ':')
	if !ok || i < 0 {
		return access{}, false
	}
	return access{Type: kind, Name: rest[:i], Actions: strings.Split(rest[i+1:], ",")}, true
}

// registryClaims are those of the registry's own tokens. A refresh token has
// GrantType, an access token has Access.
type registryClaims struct {
	lifetime
	Audience  string   `json:"aud"`
	AppID     string   `json:"appid"`
	GrantType string   `json:"grant_type,omitempty"`
	Access    []access `json:"access,omitempty"`
}

const refreshGrant = "refresh_token"

// Reasons of a challenge.
const (
	missingToken      = "missing"
	invalidToken      = "invalid_token"
	insufficientScope = "insufficient_scope"
)

// refusal is why a request is not let in; "" if it is.
func (a *ACR) refusal(r *http.Request, need access) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || !strings.EqualFold(kind, "Bearer") {
		return missingToken
	}
	var c registryClaims
	if verify(&a.tokens.key().PublicKey, token, &c) != nil || !c.inForce(time.Now()) || c.Audience != a.host || c.GrantType != "" {
		return invalidToken
	}
	enough := func(has access) bool {
		return has.Type == need.Type && has.Name == need.Name && containsAll(has.Actions, need.Actions)
	}
	if need.Name != "" && !slices.ContainsFunc(c.Access, enough) {
		return insufficientScope
	}
	return ""
}

func containsAll(has, need []string) bool {
	return !slices.ContainsFunc(need, func(n string) bool { return !slices.Contains(has, n) })
}

// identityAudiences are what an identity's token may be for.
var identityAudiences = []string{"https://containerregistry.azure.net", "https://management.azure.com"}

// exchange gives a refresh token for the token of a managed identity that may
// pull. To all others it says no more than that.
func (a *ACR) exchange(w http.ResponseWriter, r *http.Request) {
	if !a.sane(w, r, "access_token") {
		return
	}
	var c struct {
		lifetime
		Audience string `json:"aud"`
		AppID    string `json:"appid"`
	}
	err := verify(a.identities.TokenKey(), r.PostForm.Get("access_token"), &c)
	if err != nil || !c.inForce(time.Now()) || !slices.Contains(identityAudiences, strings.TrimSuffix(c.Audience, "/")) || !a.mayPull(c.AppID) {
		unauthorized(w)
		return
	}
	a.give(w, "refresh_token", registryClaims{lifetime: lasting(refreshLifetime), AppID: c.AppID, GrantType: refreshGrant})
}

// sane looks at the form of a request for a token.
func (a *ACR) sane(w http.ResponseWriter, r *http.Request, grant string) bool {
	if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != grant || r.PostForm.Get("service") != a.host {
		registryError(w, http.StatusBadRequest, "UNSUPPORTED", "want grant_type "+grant+" and service "+a.host)
		return false
	}
	return true
}

// byForm gives an access token for a refresh token.
func (a *ACR) byForm(w http.ResponseWriter, r *http.Request) {
	if a.sane(w, r, refreshGrant) {
		a.admit(w, r.PostForm.Get("refresh_token"), r.PostForm["scope"])
	}
}

// tokenUser is the name under which a refresh token is a password.
const tokenUser = "00000000-0000-0000-0000-000000000000"

// byQuery does so for clients that know passwords only.
func (a *ACR) byQuery(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if user != tokenUser || r.URL.Query().Get("service") != a.host {
		unauthorized(w) // nobody pulls without a name
		return
	}
	a.admit(w, password, r.URL.Query()["scope"])
}

// admit gives an access token for what of the scopes may be had.
func (a *ACR) admit(w http.ResponseWriter, refresh string, scopes []string) {
	var c registryClaims
	err := verify(&a.tokens.key().PublicKey, refresh, &c)
	if err != nil || !c.inForce(time.Now()) || c.GrantType != refreshGrant || c.Audience != a.host || !a.mayPull(c.AppID) {
		unauthorized(w)
		return
	}
	var all []access
	for scope := range strings.FieldsSeq(strings.Join(scopes, " ")) {
		want, ok := parseAccess(scope)
		if ok && want.Type == "repository" && slices.Contains(want.Actions, "pull") {
			all = append(all, access{want.Type, want.Name, []string{"pull"}})
		}
	}
	if len(all) == 0 {
		unauthorized(w)
		return
	}
	a.give(w, "access_token", registryClaims{lifetime: lasting(accessLifetime), AppID: c.AppID, Access: all})
}

func (a *ACR) give(w http.ResponseWriter, field string, c registryClaims) {
	c.Audience = a.host
	token, err := a.tokens.sign(c)
	if err != nil {
		registryError(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{field: token})
}
