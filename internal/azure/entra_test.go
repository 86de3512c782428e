package azure

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

// entra is a token endpoint with TLS.
func entra(t *testing.T, h Host, answers ...http.HandlerFunc) (*Source, *service, *desired.AzureIdentity) {
	t.Helper()
	s := serve(t, answers...)
	tls := httptest.NewTLSServer(s.Config.Handler)
	t.Cleanup(tls.Close)
	source := sourceAt(h, s)
	source.via = &desired.Egress{CAs: []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))}}
	return source, s, &desired.AzureIdentity{Kind: desired.AzureServicePrincipal, TenantID: tenant, ClientID: client, ServerID: azureidentity.AKS, Authority: tls.URL}
}

func TestApplicationToken(t *testing.T) {
	m := machine()
	m.Put("/etc/berth/secret", "fi le+&\n", 0o600)
	t.Setenv("BERTH_TEST_SECRET", "variable")
	token := jwt(good(m.Now(), time.Hour))
	for want, change := range map[string]func(*desired.AzureIdentity){
		"fi le+&":  func(a *desired.AzureIdentity) { a.ClientSecretFile = "/etc/berth/secret" },
		"variable": func(a *desired.AzureIdentity) { a.ClientSecretEnv = "BERTH_TEST_SECRET" },
		"inline":   func(a *desired.AzureIdentity) { a.ClientSecret = "inline" },
	} {
		source, s, a := entra(t, m, give(token))
		change(a)
		got, err := source.ForServer(context.Background(), a)
		if err != nil || got.Text.Reveal() != token {
			t.Fatalf("%s: %+v, %v", want, got, err)
		}
		r, form := s.requests[0], s.forms[0]
		if r.Method != http.MethodPost || r.URL.String() != "/"+tenant+"/oauth2/v2.0/token" || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		for key, v := range map[string]string{"grant_type": "client_credentials", "client_id": client, "scope": azureidentity.AKS + "/.default", "client_secret": want} {
			if len(form[key]) != 1 || form[key][0] != v {
				t.Errorf("%s: %s is %q", want, key, form[key])
			}
		}
	}
}

// What a service principal proves itself with is missed before anybody is asked.
func TestApplicationLacksItsProof(t *testing.T) {
	m := machine()
	m.Put("/empty", "\n", 0o600)
	m.Put("/odd", "no key", 0o600)
	m.Put("/secret", "x", 0o600)
	for name, change := range map[string]func(*desired.AzureIdentity){
		"/absent":         func(a *desired.AzureIdentity) { a.ClientSecretFile = "/absent" },
		"/empty":          func(a *desired.AzureIdentity) { a.ClientSecretFile = "/empty" },
		"BERTH_NO_SECRET": func(a *desired.AzureIdentity) { a.ClientSecretEnv = "BERTH_NO_SECRET" },
		"/absent.pem":     func(a *desired.AzureIdentity) { a.ClientCertificateFile = "/absent.pem" },
		"/odd":            func(a *desired.AzureIdentity) { a.ClientCertificateFile = "/odd" },
		"":                func(a *desired.AzureIdentity) { a.ClientSecretFile = "/secret" },
		" managed":        func(a *desired.AzureIdentity) { a.Kind = desired.AzureManagedIdentity },
	} {
		source, s, a := entra(t, m)
		change(a)
		err := source.Lacks(a)
		e, ok := errors.AsType[*exitcode.Error](err)
		if there := name == "" || name[0] == ' '; there && err != nil || !there && (!ok || !strings.Contains(err.Error(), name) || !strings.Contains(e.Remedy, "identity.servicePrincipal")) {
			t.Errorf("%s: %v", name, err)
		}
		if len(s.requests) > 0 {
			t.Errorf("%s: somebody was asked", name)
		}
	}
}

func TestApplicationRefused(t *testing.T) {
	m := machine()
	m.Put("/etc/berth/secret", "wrong", 0o600)
	for name, tc := range map[string]struct {
		answer       http.HandlerFunc
		file         string
		want, remedy string
	}{
		"wrong secret": {say(401, `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided.\r\nTrace ID: x"}`), "/etc/berth/secret", "AADSTS7000215", "not its id"},
		"expired":      {say(401, `{"error":"invalid_client","error_description":"AADSTS7000222: expired"}`), "/etc/berth/secret", "7000222", "az ad app credential reset"},
		"busy":         {say(503, `{"error":"temporarily_unavailable","error_description":"AADSTS90033: busy"}`), "/etc/berth/secret", "HTTP status 503", "is busy: try again"},
		"too often":    {say(429, ``), "/etc/berth/secret", "HTTP status 429", "is busy: try again"},
		"other":        {say(400, `{"error":"x","error_description":"AADSTS1: y"}`), "/etc/berth/secret", "AADSTS1", "Check identity.servicePrincipal"},
		"no file":      {nil, "/etc/berth/none", "no such file", "who may read it"},
	} {
		source, _, a := entra(t, m, tc.answer)
		a.ClientSecretFile = tc.file
		_, err := source.ForServer(context.Background(), a)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "Trace ID") || !strings.Contains(hintOf(err), tc.remedy) {
			t.Errorf("%s: %v; %s", name, err, hintOf(err))
		}
	}
}

// certified is a certificate and the key given, PEM.
func certified(t testing.TB, public any, signer crypto.Signer, key any) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
}

func rsaPair(t testing.TB) (*rsa.PrivateKey, []byte) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key, certified(t, &key.PublicKey, key, key)
}

// The proof holds by the public key, for the endpoint that it is sent to.
func TestAssertion(t *testing.T) {
	m := machine()
	key, text := rsaPair(t)
	m.Put("/etc/berth/app.pem", string(text), 0o600)
	source, s, a := entra(t, m, give(jwt(good(m.Now(), time.Hour))))
	a.ClientCertificateFile = "/etc/berth/app.pem"
	if _, err := source.ForServer(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	form := s.forms[0]
	if form["client_assertion_type"][0] != assertionType || form["client_secret"] != nil {
		t.Errorf("%v", form)
	}
	parts := strings.Split(form["client_assertion"][0], ".")
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := rsa.VerifyPSS(&key.PublicKey, crypto.SHA256, sum[:], signature, &rsa.PSSOptions{SaltLength: 32}); err != nil {
		t.Error(err)
	}
	block, _ := pem.Decode(text[strings.Index(string(text), "-----BEGIN CERTIFICATE"):])
	thumbprint := sha256.Sum256(block.Bytes)
	if h := decoded(t, parts[0]); h["alg"] != "PS256" || h["x5t#S256"] != base64.RawURLEncoding.EncodeToString(thumbprint[:]) {
		t.Errorf("%v", h)
	}
	c := decoded(t, parts[1])
	if c["iss"] != client || c["sub"] != client || c["aud"] != a.Authority+"/"+tenant+"/oauth2/v2.0/token" || c["jti"] == "" || c["exp"].(float64)-c["nbf"].(float64) != 300 {
		t.Errorf("%v", c)
	}
}

func decoded(t *testing.T, part string) (out map[string]any) {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || json.Unmarshal(b, &out) != nil {
		t.Fatalf("%q: %v", part, err)
	}
	return out
}

func TestPairIn(t *testing.T) {
	key, text := rsaPair(t)
	stranger, _ := rsaPair(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old := append(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), text[strings.Index(string(text), "-----BEGIN CERTIFICATE"):]...)
	for name, tc := range map[string]struct {
		text []byte
		want string
	}{
		"both":            {text, ""},
		"PKCS 1":          {old, ""},
		"no certificate":  {text[:strings.Index(string(text), "-----BEGIN CERTIFICATE")], "expected PEM"},
		"another key":     {certified(t, &key.PublicKey, key, stranger), "not the certificate's"},
		"a curve":         {certified(t, &curve.PublicKey, curve, curve), "takes no other"},
		"nothing":         {nil, "expected PEM"},
		"a damaged key":   {append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), text...), "key:"},
		"no more than it": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), "expected PEM"},
	} {
		_, _, err := pairIn(tc.text)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func FuzzPairIn(f *testing.F) {
	_, text := rsaPair(f)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, key, err := pairIn(text); err == nil && (len(c) == 0 || key == nil) {
			t.Error("nothing and no error")
		}
	})
}
