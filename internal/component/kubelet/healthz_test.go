package kubelet

import "testing"

func TestHealthz(t *testing.T) {
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{nil, "http://127.0.0.1:10248/healthz"},
		{map[string]any{"healthzPort": 10300.0, "healthzBindAddress": "::1"}, "http://[::1]:10300/healthz"},
		{map[string]any{"healthzPort": 0.0}, ""},
	} {
		if got := Healthz(c.config); got != c.want {
			t.Errorf("%v: %s", c.config, got)
		}
	}
}
