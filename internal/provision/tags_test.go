package provision

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host/memory"
)

// Tags are read as the published scripts read them; a service that does not tell
// changes nothing of what the last run knew.
func TestRotationTag(t *testing.T) {
	const known = "KUBELET_FLAGS=\"\"\n" + kubelet.RotationOffVariable + "=\"true\"\n"
	for name, c := range map[string]struct {
		status int
		tags   string
		flags  string
		want   bool
	}{
		"off":                      {200, `{"name":"aks-disable-kubelet-serving-certificate-rotation","value":"true"}`, "", true},
		"in any case, with more":   {200, `{"name":"x"},{"name":"my-AKS-Disable-Kubelet-Serving-Certificate-Rotation","value":" True."}`, "", true},
		"another value":            {200, `{"name":"aks-disable-kubelet-serving-certificate-rotation","value":"false"}`, known, false},
		"another tag":              {200, `{"name":"aks-disable-kubelet-serving","value":"true"}`, known, false},
		"no tags any more":         {200, ``, known, false},
		"busy, and off before":     {429, ``, known, true},
		"busy, and nobody knew":    {503, ``, "KUBELET_FLAGS=\"\"\n", false},
		"no such service, off":     {404, ``, known, true},
		"no such service, unknown": {404, ``, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprintf(w, `{"compute":{"tagsList":[%s]},"network":{}}`, c.tags)
			}))
			defer server.Close()
			h := memory.New()
			if c.flags != "" {
				h.Put(kubelet.FlagsFile, c.flags, 0o600)
			}
			s := addresses{url: server.URL, answer: 2 * time.Second, here: func() []netip.Addr { return nil }, route: func() string { return "192.0.2.9" }, dial: dialPatiently}
			if got := s.of(t.Context(), h); got != (Cloud{Address: "192.0.2.9", RotationOff: c.want}) {
				t.Errorf("%+v", got)
			}
		})
	}
}
