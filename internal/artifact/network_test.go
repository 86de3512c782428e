package artifact

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

// A clock that is far off makes every certificate look wrong.
func TestClockIsWrong(t *testing.T) {
	s := newSite(t, always([]byte("KUBELET")))
	for _, year := range []int{1960, 2150} {
		f := s.fetcher(Options{Budget: 500 * time.Millisecond})
		transport := f.opt.Client.Transport.(*http.Transport).Clone()
		transport.TLSClientConfig.Time = func() time.Time { return time.Date(year, 1, 2, 3, 4, 5, 0, time.UTC) }
		f.opt.Client = &http.Client{Transport: transport}
		_, err := f.Stage(t.Context(), memory.New(), kubelet("", s.tls.URL))
		if err == nil || !strings.Contains(hintOf(err), "check the clock") {
			t.Errorf("%d: %v, hint %q", year, err, hintOf(err))
		}
	}
}

// A name server that answers too late is named as the cause.
func TestNameServerIsSlow(t *testing.T) {
	mute, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", mute.LocalAddr().String())
	}}
	dialer := &net.Dialer{Timeout: 200 * time.Millisecond, Resolver: resolver}
	f := New(Options{Budget: time.Second, Client: &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}})
	_, err = f.Stage(t.Context(), memory.New(), kubelet("", "https://files.berth.invalid/k"))
	if err == nil || !strings.Contains(hintOf(err), "resolv.conf") {
		t.Errorf("got %v, hint %q", err, hintOf(err))
	}
}
