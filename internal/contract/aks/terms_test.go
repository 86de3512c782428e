package aks

import (
	"testing"
	"time"
)

func TestTermsOf(t *testing.T) {
	for name, c := range map[string]struct {
		document string
		want     Terms
	}{
		"nothing":    {``, Terms{15 * time.Minute, false}},
		"defaults":   {`{}`, Terms{15 * time.Minute, false}},
		"both":       {`{"cse_timeout": 60, "pre_provision_only": true}`, Terms{time.Minute, true}},
		"camel":      {`{"cseTimeout": 60, "preProvisionOnly": true}`, Terms{time.Minute, true}},
		"quoted":     {`{"cse_timeout": "60"}`, Terms{time.Minute, false}},
		"exponent":   {`{"cse_timeout": 1.2e3}`, Terms{20 * time.Minute, false}},
		"fraction":   {`{"cse_timeout": 60.5}`, Terms{15 * time.Minute, false}},
		"huge":       {`{"cse_timeout": "1e300"}`, Terms{15 * time.Minute, false}},
		"too long":   {`{"cse_timeout": 21601}`, Terms{15 * time.Minute, false}},
		"negative":   {`{"cse_timeout": -1}`, Terms{15 * time.Minute, false}},
		"wrong type": {`{"cse_timeout": [], "pre_provision_only": "yes"}`, Terms{15 * time.Minute, false}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TermsOf([]byte(c.document)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func FuzzTermsOf(f *testing.F) {
	f.Add([]byte(`{"cse_timeout": 60}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := TermsOf(b).Timeout; got <= 0 || got > 6*time.Hour {
			t.Errorf("timeout %s", got)
		}
	})
}
