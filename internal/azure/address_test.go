package azure

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host/memory"
)

const dualStack = `{"network":{"interface":[{"ipv4":{"ipAddress":[{"privateIpAddress":"10.0.0.4"}]},"ipv6":{"ipAddress":[{"privateIpAddress":"fd00::4"}]}}]}}`

func TestNodeAddress(t *testing.T) {
	there := []netip.Addr{netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("fd00::4")}
	const inForce = "# Written by berth.\nKUBELET_FLAGS=\"--cloud-provider=external --node-ip=10.0.0.4,fd00::4 --v=2\"\n"
	for name, c := range map[string]struct {
		answers []int // of the metadata service, one after the other; the last stays
		flags   string
		there   []netip.Addr
		want    string
	}{
		"the cloud knows":               {[]int{200}, "", there, "10.0.0.4,fd00::4"},
		"the cloud is busy, then not":   {[]int{429, 503, 200}, "", there, "10.0.0.4,fd00::4"},
		"busy: what is in force stays":  {[]int{429}, inForce, there, "10.0.0.4,fd00::4"},
		"busy, for the first time":      {[]int{429}, "", there, "192.0.2.9"},
		"busy, and the address is gone": {[]int{429}, inForce, there[:1], "192.0.2.9"},
		"busy, and none was given":      {[]int{429}, "KUBELET_FLAGS=\"--v=2\"\n", there, "192.0.2.9"},
		"no such service":               {[]int{404}, inForce, there, "10.0.0.4,fd00::4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32 // in the last of the tries
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				code := c.answers[min(int(asked.Add(1)), len(c.answers))-1]
				w.WriteHeader(code)
				if code == http.StatusOK {
					_, _ = w.Write([]byte(dualStack))
				}
			}))
			defer server.Close()
			h := memory.New()
			if c.flags != "" {
				h.Put(kubelet.FlagsFile, c.flags, 0o600)
			}
			s := addresses{url: server.URL, here: func() []netip.Addr { return c.there }, route: func() string { return "192.0.2.9" }, dial: dialPatiently}
			var got string
			for _, s.answer = range []time.Duration{2 * time.Second, 20 * time.Second} { // a busy machine needs more
				asked.Store(0)
				start := time.Now()
				got = s.of(t.Context(), h).Address
				if spent := time.Since(start); spent > s.answer+20*time.Second {
					t.Errorf("it took %v", spent)
				}
				if got == c.want {
					break
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if n := asked.Load(); c.answers[0] == 404 && n > 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestNobodyAnswers: where no metadata service is, a first run loses little time,
// and one of a node that has its address hardly any.
func TestNobodyAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		flags, want string
		most        time.Duration
	}{
		"first run":      {"", "192.0.2.9", metadataConnect},
		"the node is up": {"KUBELET_FLAGS=\"--node-ip=10.0.0.4\"\n", "10.0.0.4", metadataConnectAgain},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := memory.New()
				h.Put(kubelet.FlagsFile, c.flags, 0o600)
				s := addresses{
					url: metadataURL, answer: metadataAnswer,
					here:  func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.0.0.4")} },
					route: func() string { return "192.0.2.9" },
					dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					},
				}
				start := time.Now()
				if got := s.of(t.Context(), h).Address; got != c.want || time.Since(start) > c.most {
					t.Errorf("%q after %s", got, time.Since(start))
				}
			})
		})
	}
}

func TestInForce(t *testing.T) {
	for text, want := range map[string]string{
		`KUBELET_FLAGS="--node-ip=10.0.0.4"`:               "10.0.0.4",
		`KUBELET_FLAGS="--v=2 --node-ip=fd00::4"`:          "fd00::4",
		`KUBELET_FLAGS="--x-node-ip=10.0.0.4"`:             "",
		`KUBELET_FLAGS="--node-ip=nonsense"`:               "",
		`KUBELET_FLAGS="\"--node-ip=10.0.0.4, 10.0.0.5\""`: "",
		``: "",
	} {
		h := memory.New()
		h.Put(kubelet.FlagsFile, text+"\n", 0o600)
		everything := func(a netip.Addr) bool { return a.IsValid() }
		if got := inForce(h, everything); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// dialPatiently has all the time it needs: a busy machine is no absent service.
func dialPatiently(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(context.WithoutCancel(ctx), network, address)
}
