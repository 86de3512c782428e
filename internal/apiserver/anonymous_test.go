package apiserver

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

func TestAnonymous(t *testing.T) {
	s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a credential was sent")
		}
		w.Header().Set("Date", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.WriteHeader(http.StatusForbidden)
	}))
	x, err := Anonymous(t.Context(), s.URL)
	if err != nil || x.Status != http.StatusForbidden || x.Date.Unix() != 1136214245 || x.At.IsZero() || x.Host != s.Listener.Addr().String() {
		t.Fatalf("%+v, %v", x, err)
	}
	if err := x.Trusted([]byte(ca), time.Now()); err != nil {
		t.Error(err)
	}
	_, otherCA := selfSigned(t)
	for name, c := range map[string]struct {
		ca   string
		at   time.Time
		host string
		is   func(error) bool
	}{
		"other CA":   {otherCA, time.Now(), x.Host, isType[x509.UnknownAuthorityError]},
		"later":      {ca, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), x.Host, isType[x509.CertificateInvalidError]},
		"other name": {ca, time.Now(), "other.invalid:443", isType[x509.HostnameError]},
		"no CA":      {"text", time.Now(), x.Host, func(err error) bool { return errors.Is(err, ErrNoCertificate) }},
	} {
		y := x
		y.Host = c.host
		if err := y.Trusted([]byte(c.ca), c.at); !c.is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestAnonymousNamesTheLayer(t *testing.T) {
	closed := listen(t, nil)
	_ = closed.Close()
	plain := listen(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); _ = c.Close() })
	for server, layer := range map[string]Layer{
		"https://" + closed.Addr().String(): LayerTCP,
		"https://" + plain.Addr().String():  LayerTLS,
		"https://no-such-host.invalid":      LayerDNS,
		"https://":                          LayerDNS,
	} {
		if _, err := Anonymous(t.Context(), server); LayerOf(err) != layer {
			t.Errorf("%s: %v", server, err)
		}
	}
}

func TestMay(t *testing.T) {
	s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer a.b" || !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var asked accessReview
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		asked.Status = accessStatus{Allowed: asked.Spec.Attributes.Subresource == "nodeclient", Reason: "because"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(asked)
	}))
	ask := func(token string, r Right) (bool, string, error) {
		c, err := NewClient(Access{Server: s.URL, CA: []byte(ca), Token: desired.Secret(token)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.May(t.Context(), r)
	}
	r := Right{Verb: "create", Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: "nodeclient"}
	if ok, why, err := ask("a.b", r); !ok || why != "because" || err != nil {
		t.Errorf("%v, %q, %v", ok, why, err)
	}
	if got := r.String(); got != "create certificatesigningrequests.certificates.k8s.io/nodeclient" {
		t.Error(got)
	}
	r.Subresource = ""
	if ok, _, err := ask("a.b", r); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, _, err := ask("other", r); !Unknown(err) {
		t.Errorf("got %v", err)
	}
}
