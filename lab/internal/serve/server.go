package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Server is one running HTTP server.
type Server struct {
	http *http.Server
	done chan error
	addr net.Addr
}

// Start serves h on l, which it closes in Close. A panic of
// http.ErrAbortHandler cuts the connection.
func Start(l net.Listener, h http.Handler) *Server {
	s := &Server{
		http: &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second,
			// Broken clients are what is tested here: no news.
			ErrorLog: log.New(io.Discard, "", 0),
		},
		done: make(chan error, 1),
		addr: l.Addr(),
	}
	go func() { s.done <- s.http.Serve(l) }()
	return s
}

// StartTLS is Start over TLS with one certificate.
func StartTLS(l net.Listener, cert tls.Certificate, h http.Handler) *Server {
	return Start(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), h)
}

// Addr is where the server listens, as host:port.
func (s *Server) Addr() string { return s.addr.String() }

// URL is Addr as a plain HTTP address.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Close ends the server and all its connections.
func (s *Server) Close() error {
	err := s.http.Close()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
