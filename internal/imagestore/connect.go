package imagestore

import (
	"context"
	"net"
	"sync"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// The keys by which containerd knows whose a call is and what keeps its blobs.
const (
	namespaceKey = "containerd-namespace"
	leaseKey     = "containerd-lease"
)

// session is a connection to containerd for one call of a Store.
type session struct {
	turns   *turns
	at      settings
	conn    *grpc.ClientConn
	content contentapi.ContentClient
	images  imagesapi.ImagesClient
	leases  leasesapi.LeasesClient

	mu      sync.Mutex
	dialErr error // of the last attempt
}

// open prepares a connection; it does not wait for one.
func (s *Store) open() (*session, error) {
	c := &session{turns: &s.turns, at: s.own.complete()}
	conn, err := grpc.NewClient("passthrough:///"+c.at.socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(c.dial),
		grpc.WithDisableServiceConfig(),
		grpc.WithAuthority("localhost"),
		// A connection to a local socket costs microseconds to try. To be told of a new
		// socket would need ResetConnectBackoff, which races with the library's own work.
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 5 * time.Second,
			Backoff: backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 50 * time.Millisecond}}),
		grpc.WithUnaryInterceptor(c.unary), grpc.WithStreamInterceptor(c.stream))
	if err != nil {
		return nil, &Error{Doing: "connect", Err: err}
	}
	c.conn = conn
	c.content, c.images, c.leases = contentapi.NewContentClient(conn), imagesapi.NewImagesClient(conn), leasesapi.NewLeasesClient(conn)
	return c, nil
}

// close ends the session; an error of it would say nothing about the calls.
func (c *session) close() { _ = c.conn.Close() }

func (c *session) dial(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialErr = err
	return conn, err
}

func (c *session) whyNot() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialErr
}

// unary puts the namespace on each call, and gives one up that is not answered:
// for the caller, containerd was away.
func (c *session) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	bounded, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, namespaceKey, c.at.namespace), c.at.answer)
	defer cancel()
	return c.unheard(ctx, bounded, next(bounded, method, req, reply, cc, opts...))
}

// unheard makes an error of its own of the end of a call's time. containerd knows
// the time, too, and may be the first to see that it is over.
func (c *session) unheard(ctx, bounded context.Context, err error) error {
	if err != nil && ctx.Err() == nil && (bounded.Err() != nil || isCode(err, codes.DeadlineExceeded)) {
		return silence(c.at.answer)
	}
	return err
}

func (c *session) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return next(metadata.AppendToOutgoingContext(ctx, namespaceKey, c.at.namespace), desc, cc, method, opts...)
}

// glance fails at once where nobody listens.
func (c *session) glance(ctx context.Context) error {
	conn, err := c.dial(ctx, c.at.socket)
	if err != nil {
		return &NotRunningError{Socket: c.at.socket, Err: err}
	}
	return conn.Close()
}

// connected waits until containerd answers. Its errors are *NotRunningError and
// ctx's own.
func (c *session) connected(ctx context.Context) error {
	if c.conn.GetState() == connectivity.Ready {
		return nil
	}
	start := time.Now()
	waiting, cancel := context.WithTimeout(ctx, c.at.patience)
	defer cancel()
	for {
		state := c.conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		if state == connectivity.Idle {
			c.conn.Connect()
		}
		if !c.conn.WaitForStateChange(waiting, state) {
			return c.gaveUp(ctx, waiting, start)
		}
	}
}

// gaveUp is the end of waiting: a cancelled ctx says nothing against containerd.
func (c *session) gaveUp(ctx, waiting context.Context, start time.Time) error {
	if ctx.Err() == context.Canceled {
		return context.Cause(ctx)
	}
	err := c.whyNot()
	if err == nil {
		err = context.Cause(waiting)
	}
	return &NotRunningError{Socket: c.at.socket, Waited: time.Since(start), Err: err}
}
