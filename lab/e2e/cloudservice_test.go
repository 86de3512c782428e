package e2e

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// serviceOfCloud is a service that answers some machines at an address that is the same
// in every cloud: others see nothing of it, and may have one of their own there.
type serviceOfCloud struct {
	lab *lab.Lab
	// known is the address that machines ask, at the one of the lab that answers.
	known, at netip.Addr
}

var services atomic.Uint32

// newService gives the lab an address until the test ends.
func newService(t *testing.T, l *lab.Lab, known string) *serviceOfCloud {
	t.Helper()
	n := services.Add(1)
	s := &serviceOfCloud{l, netip.MustParseAddrPort(known).Addr(), netip.AddrFrom4([4]byte{198, 18, byte(1 + n>>8), byte(n)})}
	takeAddress(t, l, s.at)
	return s
}

// reaches has machines find the service until the test ends.
func (s *serviceOfCloud) reaches(t *testing.T, from netip.Prefix) {
	t.Helper()
	if err := s.lab.Redirect(within(t, 10*time.Second), from, s.known, s.at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check(t, s.lab.EndRedirect(ctx, from, s.known, s.at))
	})
}

func (s *serviceOfCloud) reachesNode(t *testing.T, n *lab.Node) {
	t.Helper()
	s.reaches(t, netip.PrefixFrom(n.IP, n.IP.BitLen()))
}

// listen waits until an earlier listener is gone: a program that another test is starting
// may hold its socket for a moment.
func (s *serviceOfCloud) listen(t *testing.T, port uint16) net.Listener {
	t.Helper()
	ctx, at := within(t, 10*time.Second), netip.AddrPortFrom(s.at, port).String()
	for {
		l, err := s.lab.Listen(ctx, "tcp", at)
		if err == nil {
			return l
		}
		if !errors.Is(err, syscall.EADDRINUSE) || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// takeAddress gives the lab an address for the time of the test.
func takeAddress(t *testing.T, l *lab.Lab, a netip.Addr) {
	t.Helper()
	if err := l.AddAddress(within(t, 10*time.Second), a); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = l.Command(ctx, "ip", "addr", "del", a.String()+"/32", "dev", "lab0").Run() // it may be gone
	})
}

// metadataService is the instance metadata service of some machines.
type metadataService struct {
	*serviceOfCloud
	metadata *serve.Metadata
	// stop ends it.
	stop func() error
}

func newMetadata(t *testing.T, l *lab.Lab) *metadataService {
	t.Helper()
	return &metadataService{newService(t, l, serve.IMDSAddress), serve.NewMetadata(serve.Instance{}), func() error { return nil }}
}

// start serves the metadata until stop.
func (s *metadataService) start(t *testing.T) {
	t.Helper()
	s.stop = serve.Start(s.listen(t, 80), s.metadata).Close
	t.Cleanup(func() { check(t, s.halt()) })
}

func (s *metadataService) halt() error {
	stop := s.stop
	s.stop = func() error { return nil }
	return stop()
}

// mute takes connections and never answers.
func (s *metadataService) mute(t *testing.T) *serve.Mute {
	t.Helper()
	return serve.StartMute(s.listen(t, 80))
}

// tokens is how often the service gave a token.
func (s *metadataService) tokens() int {
	n, _ := s.metadata.Count(tokenService)
	return n
}
