package azure

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

func TestExecVersion(t *testing.T) {
	for info, want := range map[string]string{
		"": execV1,
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`:      execV1,
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"interactive":false}}`: execV1beta1,
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1alpha1"}`:                             "",
		`{"kind":"Pod","apiVersion":"client.authentication.k8s.io/v1"}`:                                              "",
		`{`: "",
	} {
		got, err := ExecVersion(info)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", info, got, err)
		}
	}
}

func TestExecCredential(t *testing.T) {
	c := Credential{Token: Token{Text: "a.b.c", Expires: time.Unix(1_800_000_300, 0)}, Renew: time.Unix(1_800_000_000, 5)}
	b, err := c.ExecCredential(execV1)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "spec")
	want := map[string]any{"kind": "ExecCredential", "apiVersion": execV1,
		"status": map[string]any{"token": "a.b.c", "expirationTimestamp": "2027-01-15T08:00:00Z"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzExecVersion(f *testing.F) {
	f.Add(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}`)
	f.Fuzz(func(t *testing.T, info string) {
		if v, err := ExecVersion(info); err == nil && !strings.HasPrefix(v, "client.authentication.k8s.io/v1") {
			t.Errorf("%q", v)
		}
	})
}

func TestPublished(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		kind desired.AzureKind
		ok   bool
		want string
	}{
		"nothing":                              {nil, "", false, ""},
		"msi":                                  {map[string]string{"AAD_LOGIN_METHOD": "msi", "AZURE_CLIENT_ID": client}, desired.AzureManagedIdentity, true, ""},
		"msi with an agent of Arc":             {map[string]string{"AAD_LOGIN_METHOD": "msi", "AZURE_TENANT_ID": tenant}, desired.AzureArc, true, ""},
		"msi with Arc's variables":             {map[string]string{"AAD_LOGIN_METHOD": "msi", "IDENTITY_ENDPOINT": "x", "IMDS_ENDPOINT": "y"}, desired.AzureArc, true, ""},
		"msi with one of them":                 {map[string]string{"AAD_LOGIN_METHOD": "msi", "IDENTITY_ENDPOINT": "x"}, desired.AzureManagedIdentity, true, ""},
		"msi with a client id beside an agent": {map[string]string{"AAD_LOGIN_METHOD": "msi", "AZURE_CLIENT_ID": client}, desired.AzureManagedIdentity, true, ""},
		"spn":                                  {map[string]string{"AAD_LOGIN_METHOD": "spn", "AZURE_TENANT_ID": tenant, "AAD_SERVICE_PRINCIPAL_CLIENT_ID": client, "AAD_SERVICE_PRINCIPAL_CLIENT_SECRET": "s"}, desired.AzureServicePrincipal, true, ""},
		"spn alone":                            {map[string]string{"AAD_LOGIN_METHOD": "spn"}, desired.AzureServicePrincipal, true, "tenantId and clientId"},
		"devicecode":                           {map[string]string{"AAD_LOGIN_METHOD": "devicecode"}, "", false, "expected msi or spn"},
	} {
		m := memory.New()
		if strings.Contains(name, "agent") {
			m.Put("/opt/azcmagent/bin/himds", "program", 0o755)
		}
		a, ok, err := Published(m, func(n string) string { return tc.env[n] })
		if a.Kind != tc.kind || ok != tc.ok || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %+v, %v, %v", name, a, ok, err)
		}
	}
}
