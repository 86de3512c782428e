package azure

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"encoding/pem"

	"github.com/berth-dev/berth/internal/desired"
)

const aks = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/Edge/providers/Microsoft.ContainerService/managedClusters/one"

// manager is Azure Resource Manager, and a machine that gives tokens for it.
func manager(t *testing.T, audience string, answers ...http.HandlerFunc) (s *Source, arm *service, address string, via *desired.Egress) {
	t.Helper()
	m := machine()
	arm = serve(t, answers...)
	tls := httptest.NewTLSServer(arm.Config.Handler)
	t.Cleanup(tls.Close)
	if audience == "" {
		audience = tls.URL + "/"
	}
	c := good(m.Now(), time.Hour)
	c["aud"] = audience
	via = &desired.Egress{CAs: []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))}}
	return sourceAt(m, serve(t, give(jwt(c)))), arm, tls.URL, via
}

func userCredentialOf(server, ca string) string {
	k := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n" +
		"clusters: [{name: k, cluster: {server: \"" + server + "\", certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(ca)) + "}}]\nusers: [{name: u, user: {token: SECRETSECRET}}]\n"
	return fmt.Sprintf(`{"kubeconfigs":[{"name":"clusterUser","value":%q}]}`, base64.StdEncoding.EncodeToString([]byte(k)))
}

const somePEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

// The endpoint is the one for users, and the answer to 429 is to come back later.
func TestCluster(t *testing.T) {
	s, arm, address, via := manager(t, "", say(http.StatusTooManyRequests, ""), say(http.StatusOK, userCredentialOf("https://one.example:443", somePEM)))
	got, err := s.Cluster(context.Background(), managed(), via, address+"/", aks)
	if err != nil || got.Server != "https://one.example:443" || got.CA != somePEM || got.ResourceID != strings.ToLower(aks) {
		t.Fatalf("%+v, %v", got, err)
	}
	r := arm.requests[1]
	if r.Method != http.MethodPost || r.URL.String() != aks+"/listClusterUserCredential?api-version=2024-02-01" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ey") || arm.asked() != 2 {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
}

func TestClusterRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		status             int
		body, want, remedy string
	}{
		"no role":       {403, `{"error":{"code":"AuthorizationFailed","message":"The client does not have authorization"}}`, "HTTP status 403: AuthorizationFailed: The client", UserRole},
		"no cluster":    {404, `{"error":{"code":"ResourceNotFound","message":"x"}}`, "ResourceNotFound", "cluster.resourceId"},
		"unknown":       {401, `{}`, "HTTP status 401", "tenant"},
		"conflict":      {409, `{}`, "HTTP status 409", "again"},
		"accepted":      {202, ``, "HTTP status 202", "again"},
		"none":          {200, `{"kubeconfigs":[]}`, "no kubeconfig", "cluster.server"},
		"no JSON":       {200, `<`, "can't be read", "cluster.server"},
		"no base64":     {200, `{"kubeconfigs":[{"value":"%"}]}`, "can't be read", "cluster.server"},
		"plain http":    {200, userCredentialOf("http://one.example", somePEM), "no https server", "cluster.server"},
		"no CA":         {200, userCredentialOf("https://one.example", "x"), "no CA", "cluster.server"},
		"no kubeconfig": {200, `{"kubeconfigs":[{"value":"e30="}]}`, "kubeconfig", "cluster.server"},
	} {
		s, _, address, via := manager(t, "", say(tc.status, tc.body))
		_, err := s.Cluster(context.Background(), managed(), via, address, aks)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "SECRET") || !strings.Contains(hintOf(err), tc.remedy) {
			t.Errorf("%s: %v; %s", name, err, hintOf(err))
		}
	}
}

// A token that is for others is not shown to Azure Resource Manager.
func TestClusterTokenOfOthers(t *testing.T) {
	s, arm, address, via := manager(t, "https://vault.azure.net", say(200, "{}"))
	if _, err := s.Cluster(context.Background(), managed(), via, address, aks); err == nil || arm.asked() != 0 {
		t.Errorf("%v after %d requests", err, arm.asked())
	}
}

func FuzzUserCredential(f *testing.F) {
	f.Add([]byte(userCredentialOf("https://one.example", somePEM)))
	f.Fuzz(func(t *testing.T, body []byte) {
		server, ca, err := userCredential(body)
		if err == nil && (!strings.HasPrefix(strings.ToLower(server), "https://") || ca == "") {
			t.Errorf("%q %q", server, ca)
		}
	})
}
