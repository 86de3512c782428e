package azure

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
)

func TestInstanceToken(t *testing.T) {
	m := machine()
	token := jwt(good(m.Now(), time.Hour))
	s := serve(t, say(http.StatusTooManyRequests, ""), say(http.StatusInternalServerError, ""), give(token))
	got, err := sourceAt(m, s).ForServer(context.Background(), managed())
	if err != nil || got.Text.Reveal() != token {
		t.Fatalf("%+v, %v", got, err)
	}
	r := s.requests[2]
	want := "api-version=2018-02-01&client_id=" + client + "&resource=" + azureidentity.AKS
	if s.asked() != 3 || r.Method != http.MethodGet || r.URL.Path != tokenPath || r.URL.RawQuery != want || r.Header.Get("Metadata") != "true" {
		t.Errorf("%d requests, the last: %s %s %v", s.asked(), r.Method, r.URL, r.Header)
	}
}

func TestInstanceTokenRefused(t *testing.T) {
	m := machine()
	elsewhere := serve(t, give(jwt(good(m.Now(), time.Hour))))
	wrong := good(m.Now(), time.Hour)
	wrong["aud"] = "https://vault.azure.net"
	for name, tc := range map[string]struct {
		answer       http.HandlerFunc
		client       string
		want, remedy string
		requests     int
	}{
		"no identity":    {say(400, `{"error":"invalid_request","error_description":"Identity not found"}`), "", "HTTP status 400: invalid_request: Identity not found", "az vm identity assign", 1},
		"not this one":   {say(400, `{"error":"invalid_request","error_description":"Identity not found"}`), client, "HTTP status 400", client, 1},
		"a redirect":     {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "", "HTTP status 302", "try again", 1},
		"busy for long":  {say(503, ""), "", "HTTP status 503", "try again", tries},
		"no token":       {say(200, `{}`), "", "holds no token", "169.254.169.254", 1},
		"no JSON":        {say(200, `<html>`), "", "can't be read", "169.254.169.254", 1},
		"for others":     {give(jwt(wrong)), "", "it is for", "azure.serverId", 1},
		"without an end": {say(200, strings.Repeat("x", maxAnswer+1)), "", "does not end", "169.254.169.254", 1},
		"other words":    {say(400, `{"error":{"code":1},"error_description":"a\tb\nsecret"}`), "", "HTTP status 400: ab", "az vm", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.answer)
			a := managed()
			a.ClientID = tc.client
			_, err := sourceAt(m, s).ForServer(context.Background(), a)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
				t.Fatalf("%v, want %q", err, tc.want)
			}
			if hint := hintOf(err); !strings.Contains(hint, tc.remedy) || exitcode.Of(err) != exitcode.Credential {
				t.Errorf("hint %q, code %d", hint, exitcode.Of(err))
			}
			if s.asked() != tc.requests {
				t.Errorf("%d requests, want %d", s.asked(), tc.requests)
			}
		})
	}
	if elsewhere.asked() != 0 {
		t.Error("a redirect was followed")
	}
}

// Nothing that answers: the error says what this machine may not be.
func TestNoInstanceMetadata(t *testing.T) {
	s := serve(t, give("x"))
	s.Close()
	_, err := sourceAt(machine(), s).ForServer(context.Background(), managed())
	if err == nil || !strings.Contains(hintOf(err), "virtual machine in Azure") {
		t.Errorf("%v", err)
	}
}

// The services of the machine itself are never asked by a proxy.
func TestNoProxy(t *testing.T) {
	if direct(nil).Transport.(*http.Transport).Proxy != nil {
		t.Error("there is a proxy")
	}
	for name, via := range map[string]*desired.Egress{"": nil, "http://proxy.example:3128": {HTTPSProxy: "http://proxy.example:3128", NoProxy: []string{"direct.example"}}} {
		c, err := outward(via)
		if err != nil || c.Transport.(*http.Transport).Proxy == nil {
			t.Fatalf("nothing leads out through a proxy: %v", err)
		}
		if via == nil {
			continue
		}
		for host, want := range map[string]string{"login.example": name, "direct.example": ""} {
			got, err := c.Transport.(*http.Transport).Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: host}})
			if err != nil || (got == nil) != (want == "") || got != nil && got.String() != want {
				t.Errorf("%s by %v, %v", host, got, err)
			}
		}
	}
	if _, err := outward(&desired.Egress{CAs: []string{"x"}}); err == nil {
		t.Error("a CA that is none")
	}
}
