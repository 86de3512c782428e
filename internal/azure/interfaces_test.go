package azure

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/nics"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A service that is busy is asked for the interfaces again.
func TestInterfacesOfABusyService(t *testing.T) {
	busy := 2
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if busy--; busy >= 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		fmt.Fprint(w, `{"network":{"interface":[{"macAddress":"000D3A000001"},{"macAddress":"000D3A000002"}]}}`)
	}))
	defer server.Close()
	got := addresses{url: server.URL, answer: time.Minute, dial: (&net.Dialer{}).DialContext}.again(t.Context()).Interfaces
	if want := "00:0d:3a:00:00:01,00:0d:3a:00:00:02"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	server.Close()
	if got := (addresses{url: server.URL, answer: time.Minute, dial: (&net.Dialer{}).DialContext}).again(t.Context()).Interfaces; got != "" {
		t.Errorf("nobody there: %q", got)
	}
}

// TestInterfaces: interfaces are told apart by their hardware addresses; where the
// service does not tell, by those that the last run knew.
func TestInterfaces(t *testing.T) {
	const known = "[Match]\nMACAddress=00:0d:3a:00:00:09\n"
	for name, c := range map[string]struct {
		status           int
		interfaces, file string
		want             string
	}{
		"two":                 {200, `{"macAddress":"000D3AF806EC"},{"macAddress":"000D3AF806ED"}`, known, "00:0d:3a:f8:06:ec,00:0d:3a:f8:06:ed"},
		"with colons":         {200, `{"macAddress":"00:0D:3A:F8:06:EC"}`, known, "00:0d:3a:f8:06:ec"},
		"one without":         {200, `{"macAddress":"000D3AF806EC"},{}`, known, ""},
		"nonsense":            {200, `{"macAddress":"../../../etc"}`, known, ""},
		"busy, and known":     {429, ``, known, ",00:0d:3a:00:00:09"},
		"busy, by its name":   {429, ``, "[Match]\nName=eth1\n", ","},
		"busy, and no file":   {503, ``, "", ""},
		"no such service":     {404, ``, known, ",00:0d:3a:00:00:09"},
		"no interface at all": {200, ``, known, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprintf(w, `{"compute":{},"network":{"interface":[%s]}}`, c.interfaces)
			}))
			defer server.Close()
			h := memory.New()
			if c.file != "" {
				h.Put(nics.File(1), c.file, 0o644)
			}
			s := addresses{url: server.URL, answer: 2 * time.Second, here: func() []netip.Addr { return nil }, route: func() string { return "" }, dial: dialPatiently}
			if got := s.of(t.Context(), h).Interfaces; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
