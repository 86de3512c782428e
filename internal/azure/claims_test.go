package azure

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
)

func TestCheck(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	with := func(key string, v any) string {
		c := good(now, time.Hour)
		if c[key] = v; v == nil {
			delete(c, key)
		}
		return jwt(c)
	}
	for name, tc := range map[string]struct{ token, want string }{
		"good":                 {with("x", 1), ""},
		"upper case":           {with("aud", strings.ToUpper(azureidentity.AKS)), ""},
		"one in a list":        {with("aud", []string{azureidentity.AKS}), ""},
		"another audience":     {with("aud", "https://management.azure.com"), "it is for"},
		"two audiences":        {with("aud", []string{azureidentity.AKS, "x"}), "it is for"},
		"no audience":          {with("aud", nil), "it is for"},
		"another tenant":       {with("tid", other), "of the tenant"},
		"no tenant":            {with("tid", nil), "names no tenant"},
		"over":                 {with("exp", now.Unix()-1), "it expires at"},
		"as good as over":      {with("exp", now.Unix()+29), "it expires at"},
		"no time":              {with("exp", nil), "when it expires"},
		"time as text":         {with("exp", "soon"), "can't be read"},
		"absurd time":          {with("exp", 1e300), "when it expires"},
		"no token":             {"secret", "no JSON Web Token"},
		"a line break in it":   {with("x", 1) + "\n", "no JSON Web Token"},
		"not base64":           {"a.%%%.c", "not in base64url"},
		"not JSON":             {"a.YQ.c", "can't be read"},
		"very long":            {"a." + strings.Repeat("a", maxToken) + ".c", "no JSON Web Token"},
		"five parts":           {"a.b.c.d.e", "no JSON Web Token"},
		"audience is a number": {with("aud", 1), "can't be read"},
	} {
		got, err := check(tc.token, azureidentity.AKS, tenant, now)
		switch {
		case tc.want == "" && (err != nil || got.Text.Reveal() != tc.token || !got.Expires.Equal(now.Add(time.Hour))):
			t.Errorf("%s: %+v, %v", name, got, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || got.Text != ""):
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := check(with("tid", other), azureidentity.AKS, "", now); err != nil {
		t.Errorf("no tenant is named: %v", err)
	}
}

func FuzzReadClaims(f *testing.F) {
	f.Add(jwt(good(time.Unix(1_800_000_000, 0), time.Hour)))
	f.Add("a.YQ.c")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := readClaims(token); err == nil && strings.ContainsAny(token, "\r\n\x00 ") {
			t.Errorf("%q is taken", token)
		}
	})
}
