package artifact

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

// A clock that is far off makes every certificate look wrong.
func TestClockIsWrong(t *testing.T) {
	inBubble(t, clockIsWrong)
}

func clockIsWrong(t *testing.T) {
	s := newPipeSite(t, always([]byte("KUBELET")))
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
	// The library makes what guards its settings at its first question: not in a bubble.
	none := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") }}
	_, _ = none.LookupHost(t.Context(), "files.berth.invalid")
	inBubble(t, nameServerIsSlow)
}

func nameServerIsSlow(t *testing.T) {
	mute := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		return ours, nil
	}
	dialer := &net.Dialer{Timeout: 200 * time.Millisecond, Resolver: &net.Resolver{PreferGo: true, Dial: mute}}
	f := New(Options{Budget: time.Second, Client: &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}})
	_, err := f.Stage(t.Context(), memory.New(), kubelet("", "https://files.berth.invalid/k"))
	time.Sleep(time.Minute) // until the library ends the questions that nobody waits for
	if err == nil || !strings.Contains(hintOf(err), "resolv.conf") {
		t.Errorf("got %v, hint %q", err, hintOf(err))
	}
}
