package azure

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestPackagesTag: what is remembered of one tag is nothing of another.
func TestPackagesTag(t *testing.T) {
	const known = "KUBELET_FLAGS=\"\"\n" + kubelet.FromPackagesVariable + "=\"true\"\n"
	for name, c := range map[string]struct {
		status      int
		tags, flags string
		want        bool
	}{
		"on":               {200, `{"name":"ShouldEnforceKubePMCInstall","value":"true"}`, "", true},
		"in another case":  {200, `{"name":"shouldenforcekubepmcinstall","value":"TRUE"}`, "", true},
		"off":              {200, `{"name":"ShouldEnforceKubePMCInstall","value":"false"}`, known, false},
		"no such tag":      {200, `{"name":"aks-disable-kubelet-serving-certificate-rotation","value":"false"}`, known, false},
		"busy, and known":  {429, ``, known, true},
		"busy, and no one": {429, ``, "KUBELET_FLAGS=\"\"\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := cloudOf(t, c.status, c.tags, c.flags)
			if got != (Cloud{Address: "192.0.2.9", FromPackages: c.want}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// cloudOf is what a metadata service tells that answers so, to a machine with these flags.
func cloudOf(t *testing.T, status int, tags, flags string) Cloud {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"compute":{"tagsList":[%s]},"network":{}}`, tags)
	}))
	defer server.Close()
	h := memory.New()
	if flags != "" {
		h.Put(kubelet.FlagsFile, flags, 0o600)
	}
	s := addresses{url: server.URL, answer: 2 * time.Second, here: func() []netip.Addr { return nil }, route: func() string { return "192.0.2.9" }, dial: dialPatiently}
	return s.of(t.Context(), h)
}

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
			if got := cloudOf(t, c.status, c.tags, c.flags); got != (Cloud{Address: "192.0.2.9", RotationOff: c.want}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The tag that leaves drivers of GPUs to others is read and kept likewise.
func TestGPUTag(t *testing.T) {
	for name, c := range map[string]struct {
		status      int
		tags, known string
		want        bool
	}{
		"on":                  {200, `{"name":"skipgpudriverinstall","value":"True"}`, "", true},
		"off":                 {200, `{"name":"SkipGpuDriverInstall","value":"no"}`, `{"skipped":true}`, false},
		"busy, and on before": {429, "", `{"skipped":true}`, true},
		"busy, off before":    {429, "", `{"driver":"grid"}`, false},
		"busy, no settings":   {429, "", "x", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprintf(w, `{"compute":{"tagsList":[%s]},"network":{}}`, c.tags)
			}))
			defer server.Close()
			h := memory.New()
			if c.known != "" {
				h.Put(gpu.SettingsFile, c.known, 0o644)
			}
			s := addresses{url: server.URL, answer: 2 * time.Second, here: func() []netip.Addr { return nil }, route: func() string { return "192.0.2.9" }, dial: dialPatiently}
			if got := s.of(t.Context(), h); got.SkipGPU != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The address of a private API server is a tag's whole name's, and nothing else.
func TestAPIServerTag(t *testing.T) {
	for tags, want := range map[string]string{
		`{"name":"aksAPIServerIPAddress","value":"10.224.0.4"}`:                            "10.224.0.4",
		`{"name":"x","value":"1"},{"name":"AKSapiServerIPAddress","value":" 10.224.0.4 "}`: "10.224.0.4",
		`{"name":"my-aksAPIServerIPAddress","value":"10.224.0.4"}`:                         "",
		`{"name":"aksAPIServerIPAddress","value":"10.224.0.4;rm"}`:                         "",
		``: "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"compute":{"tagsList":[%s]},"network":{}}`, tags)
		}))
		s := addresses{url: server.URL, answer: time.Minute, dial: (&net.Dialer{}).DialContext}
		got := ""
		if a := s.again(t.Context()).APIServer; a.IsValid() {
			got = a.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", tags, got, want)
		}
		server.Close()
	}
}
