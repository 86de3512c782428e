package azure

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// Token is a bearer token and the time at which it is worth nothing.
type Token struct {
	Text    desired.Secret
	Expires time.Time
}

// claims are what a token says of itself. Who trusts the token verifies its
// signature; these are read so that nobody is shown a token that is meant for
// somebody else.
type claims struct {
	Audience audience `json:"aud"`
	Tenant   string   `json:"tid"`
	Expires  float64  `json:"exp"`
}

// audience is a text or a list of texts (RFC 7519, 4.1.3).
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// maxToken is far more than any token has.
const maxToken = 64 << 10

// readClaims reads the claims of a JSON Web Token in its compact form.
func readClaims(token string) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return c, errors.New("it is no JSON Web Token")
	}
	for _, r := range token { // it becomes part of a header
		if r <= ' ' || r > '~' {
			return c, errors.New("it is no JSON Web Token")
		}
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return c, errors.New("its claims are not in base64url")
	}
	if json.Unmarshal(text, &c) != nil {
		return c, errors.New("its claims can't be read")
	}
	return c, nil
}

// leastLife is how long a token must be good for to be worth showing.
const leastLife = 30 * time.Second

// check makes a token of a text that is for this server, of this tenant ("" is any)
// and not over.
func check(text, server, tenant string, now time.Time) (Token, error) {
	c, err := readClaims(text)
	if err != nil {
		return Token{}, err
	}
	switch {
	case len(c.Audience) != 1 || !strings.EqualFold(strings.TrimSuffix(c.Audience[0], "/"), server):
		return Token{}, fmt.Errorf("it is for %q, not for %s", c.Audience, server)
	case c.Tenant == "":
		return Token{}, errors.New("it names no tenant")
	case tenant != "" && !strings.EqualFold(c.Tenant, tenant):
		return Token{}, fmt.Errorf("it is of the tenant %q, not of %s", c.Tenant, tenant)
	case !(c.Expires > 0 && c.Expires < math.MaxInt32*8):
		return Token{}, errors.New("it does not say when it expires")
	}
	expires := time.Unix(int64(c.Expires), 0)
	if expires.Sub(now) < leastLife {
		return Token{}, fmt.Errorf("it expires at %s, and it is %s by this machine's clock", expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return Token{Text: desired.Secret(text), Expires: expires}, nil
}
