package azure

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestExecPlugin: there is a token for the cluster of this machine alone, and only who may
// write keeps it.
func TestExecPlugin(t *testing.T) {
	const tenant = "11111111-1111-1111-1111-111111111111"
	for name, c := range map[string]struct {
		server   string
		keep     bool
		want     string
		requests int
	}{
		"kept":              {"", true, "", 2},
		"not kept":          {"", false, "", 4},
		"spelled otherwise": {strings.ToUpper(azureidentity.AKS), true, "", 2},
		"another server":    {"https://management.azure.com", true, "and the cluster of this machine is " + azureidentity.AKS, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h, requests := memory.New(), 0
			claims := fmt.Sprintf(`{"aud":%q,"tid":%q,"exp":%d}`, azureidentity.AKS, tenant, h.Now().Add(time.Hour).Unix())
			token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
			h.PutOwned("/var/opt/azcmagent/tokens/a.key", "the key", host.Attributes{Mode: 0o600})
			agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests++; r.Header.Get("Authorization") != "Basic the key" {
					w.Header().Set("Www-Authenticate", "Basic realm=/var/opt/azcmagent/tokens/a.key")
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				fmt.Fprintf(w, `{"access_token":%q}`, token)
			}))
			t.Cleanup(agent.Close)
			t.Setenv("IDENTITY_ENDPOINT", agent.URL+"/metadata/identity/oauth2/token")
			h.Put(azureidentity.Path, `{"kind":"arc","serverId":"`+azureidentity.AKS+`"}`, 0o600)
			p := ExecPlugin{Host: h, Identity: azureidentity.Path, Server: c.server, Keep: c.keep, Getenv: os.Getenv,
				Warn: func(err error) { t.Errorf("warns: %v", err) }}
			for range 2 {
				text, err := p.Credential(t.Context())
				if c.want != "" {
					if err == nil || !strings.Contains(err.Error(), c.want) {
						t.Errorf("%v", err)
					}
				} else if err != nil || !strings.Contains(string(text), token) {
					t.Errorf("%s, %v", text, err)
				}
			}
			if requests != c.requests {
				t.Errorf("%d requests", requests)
			}
		})
	}
}
