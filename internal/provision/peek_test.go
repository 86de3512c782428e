package provision

import (
	"os"
	"testing"
	"time"
)

func writeFile(t *testing.T, p string) {
	t.Helper()
	if err := os.WriteFile(p, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestParseIntent(t *testing.T) {
	cases := map[string]struct {
		document string
		want     intent
	}{
		"nothing":    {``, intent{15 * time.Minute, false}},
		"defaults":   {`{}`, intent{15 * time.Minute, false}},
		"both":       {`{"cse_timeout": 60, "pre_provision_only": true}`, intent{time.Minute, true}},
		"camel":      {`{"cseTimeout": 60, "preProvisionOnly": true}`, intent{time.Minute, true}},
		"quoted":     {`{"cse_timeout": "60"}`, intent{time.Minute, false}},
		"exponent":   {`{"cse_timeout": 1.2e3}`, intent{20 * time.Minute, false}},
		"fraction":   {`{"cse_timeout": 60.5}`, intent{15 * time.Minute, false}},
		"huge":       {`{"cse_timeout": "1e300"}`, intent{15 * time.Minute, false}},
		"too long":   {`{"cse_timeout": 21601}`, intent{15 * time.Minute, false}},
		"negative":   {`{"cse_timeout": -1}`, intent{15 * time.Minute, false}},
		"wrong type": {`{"cse_timeout": [], "pre_provision_only": "yes"}`, intent{15 * time.Minute, false}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parseIntent([]byte(c.document)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func FuzzParseIntent(f *testing.F) {
	f.Add([]byte(`{"cse_timeout": 60}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i := parseIntent(b); i.Timeout <= 0 || i.Timeout > 6*time.Hour {
			t.Errorf("timeout %s", i.Timeout)
		}
	})
}
