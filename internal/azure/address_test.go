package azure

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
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

// TestAPausedProcessAsksAllTheSame: a busy machine may not let berth run for longer than an
// absent service is waited for. It is no answer: who asks again at once has one.
func TestAPausedProcessAsksAllTheSame(t *testing.T) { // not parallel: the whole process stops
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"network":{"interface":[{"ipv4":{"ipAddress":[{"privateIpAddress":"10.0.0.7"}]}}]}}`)
	}))
	defer server.Close()
	s := addresses{url: server.URL, answer: time.Minute, here: func() []netip.Addr { return nil }, route: func() string { return "192.0.2.9" },
		dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			pause(t, 4*metadataConnect)
			time.Sleep(time.Millisecond) // timers that are due end
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
	if got := s.of(t.Context(), memory.New()).Address; got != "10.0.0.7" {
		t.Errorf("got %q", got)
	}
}

// pause stops this process for as long. The signal may be on its way for a moment, so that
// one that ends it comes several times.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	awake := exec.Command("sh", "-c", fmt.Sprintf("sleep %f; for i in 1 2 3 4 5; do kill -CONT %d; sleep 0.05; done", d.Seconds(), os.Getpid()))
	if err := awake.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = awake.Wait() })
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		t.Error(err)
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
