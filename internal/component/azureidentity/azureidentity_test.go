package azureidentity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

const guid = "11111111-2222-3333-4444-555555555555"

func application() desired.AzureIdentity {
	return desired.AzureIdentity{Kind: desired.AzureServicePrincipal, TenantID: guid, ClientID: guid, ServerID: AKS, Authority: Authority}
}

func TestRoundTrip(t *testing.T) {
	inline := application()
	inline.ClientSecret = "s3cret"
	for _, a := range []desired.AzureIdentity{
		{Kind: desired.AzureManagedIdentity, ServerID: AKS}, {Kind: desired.AzureArc, TenantID: guid, ServerID: AKS}, inline,
	} {
		text, err := Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(text)
		if diff := cmp.Diff(a, got); err != nil || diff != "" {
			t.Errorf("%v %s\n%s", err, diff, text)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                              "EOF",
		`{"kind":"arc"}`:                "serverId is missing",
		`{"kind":"arc","serverId":"x"}`: "no GUID",
		`{"kind":"tea","serverId":"` + AKS + `"}`:              "none of",
		`{"kind":"arc","serverId":"` + AKS + `","secret":"x"}`: "unknown field",
		`{"kind":"arc","serverId":"` + AKS + `"}{}`:            "after the identity",
		`{"kind":"servicePrincipal","serverId":"` + AKS + `"}`: "needs tenantId and clientId",
		`{"kind":"servicePrincipal","serverId":"` + AKS + `","tenantId":"` + guid + `","clientId":"` + guid + `","authority":"http://x"}`:  "no https URL",
		`{"kind":"servicePrincipal","serverId":"` + AKS + `","tenantId":"` + guid + `","clientId":"` + guid + `","authority":"https://x"}`: "needs one of",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"kind":"arc","serverId":"` + AKS + `"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := Parse(again); err != nil || b != a {
			t.Errorf("%+v became %+v, %v", a, b, err)
		}
	})
}
