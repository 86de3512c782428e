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
		"nothing":    {``, Terms{Timeout: 15 * time.Minute, ImageBuild: false}},
		"defaults":   {`{}`, Terms{Timeout: 15 * time.Minute, ImageBuild: false}},
		"both":       {`{"cse_timeout": 60, "pre_provision_only": true}`, Terms{Timeout: time.Minute, ImageBuild: true}},
		"camel":      {`{"cseTimeout": 60, "preProvisionOnly": true}`, Terms{Timeout: time.Minute, ImageBuild: true}},
		"quoted":     {`{"cse_timeout": "60"}`, Terms{Timeout: time.Minute, ImageBuild: false}},
		"exponent":   {`{"cse_timeout": 1.2e3}`, Terms{Timeout: 20 * time.Minute, ImageBuild: false}},
		"fraction":   {`{"cse_timeout": 60.5}`, Terms{Timeout: 15 * time.Minute, ImageBuild: false}},
		"huge":       {`{"cse_timeout": "1e300"}`, Terms{Timeout: 15 * time.Minute, ImageBuild: false}},
		"too long":   {`{"cse_timeout": 21601}`, Terms{Timeout: 15 * time.Minute, ImageBuild: false}},
		"negative":   {`{"cse_timeout": -1}`, Terms{Timeout: 15 * time.Minute, ImageBuild: false}},
		"wrong type": {`{"cse_timeout": [], "pre_provision_only": "yes"}`, Terms{Timeout: 15 * time.Minute, ImageBuild: false}},
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
