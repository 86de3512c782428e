package apicheck

import (
	"testing"
	"time"
)

func TestURL(t *testing.T) {
	for name, want := range map[string]string{
		"api.example": "https://api.example:443",
		"10.0.0.1":    "https://10.0.0.1:443",
		"fd00::1":     "https://[fd00::1]:443",
	} {
		check := Resource(name, "", time.Minute)
		if got := URL(name); got != want || check.Host != name || check.Port != 443 {
			t.Errorf("%s: %s, %+v", name, got, check)
		}
		if err := check.Validate(); err != nil {
			t.Error(err)
		}
	}
}
