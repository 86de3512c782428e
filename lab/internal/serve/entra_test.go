package serve

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const entraTenant = "11111111-1111-1111-1111-111111111111"

// A token holds by the key that the discovery answer leads to.
func TestEntra(t *testing.T) {
	e := NewEntra("https://login.test", entraTenant)
	e.AddApplication(Application{ClientID: "app", ObjectID: "object", Secret: "s"})
	base := start(t, e)
	get := func(p string, into any) {
		t.Helper()
		resp, err := http.Get(base + p)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	var d struct {
		Issuer  string
		JWKSURI string `json:"jwks_uri"`
	}
	get("/"+entraTenant+"/v2.0/.well-known/openid-configuration", &d)
	var keys struct{ Keys []struct{ N, E string } }
	get(strings.TrimPrefix(d.JWKSURI, "https://login.test"), &keys)
	n, _ := base64.RawURLEncoding.DecodeString(keys.Keys[0].N)
	x, _ := base64.RawURLEncoding.DecodeString(keys.Keys[0].E)
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(x).Int64())}

	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"app"}, "client_secret": {"s"}, "scope": {"server/.default"}}
	ask := func() (int, string) {
		resp, err := http.PostForm(base+"/"+entraTenant+"/oauth2/v2.0/token", form)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	status, body := ask()
	var said struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	var c struct{ Iss, Tid, Aud, Oid string }
	if err := verify(key, said.AccessToken, &c); err != nil || c.Iss != d.Issuer || c.Tid != entraTenant || c.Aud != "server" || c.Oid != "object" {
		t.Errorf("%+v, %v", c, err)
	}
	for field, want := range map[string]string{"client_secret": "AADSTS7000215", "client_id": "AADSTS700016", "scope": "AADSTS900144"} {
		kept := form.Get(field)
		form.Set(field, "x")
		if status, body := ask(); status == 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", field, status, body)
		}
		form.Set(field, kept)
	}
}
