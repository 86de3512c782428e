// Package status serves what monitoring asks the agent for, on loopback only:
// whether it works, and counts in Prometheus' text format.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Counts are named numbers that only grow. The zero value is ready.
type Counts struct {
	mu     sync.Mutex
	values map[string]uint64
}

// help says what each count is. A name may have labels.
var help = map[string]string{
	Applied:  "documents that came into force",
	Failed:   "documents that failed, each try",
	Repaired: "actions against drift",
	Reported: "differences that were left alone",
}

// The counts.
const (
	Applied  = "berth_agent_documents_applied_total"
	Failed   = "berth_agent_documents_failed_total"
	Repaired = "berth_agent_drift_repairs_total"
	Reported = "berth_agent_drift_reports_total"
)

// Add adds to a count.
func (c *Counts) Add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = map[string]uint64{}
	}
	c.values[name] += uint64(n)
}

// write prints all counts.
func (c *Counts) write(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(help)) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s counter\n%s %d\n", name, help[name], name, name, c.values[name])
	}
}

// Server answers on two ports.
type Server struct {
	Counts *Counts
	// Ready says why the agent can't do its work yet; nil if it can.
	Ready func() error
	// Health and Metrics are ports of the loopback interface.
	Health, Metrics int
	Log             *slog.Logger
}

// Run serves until ctx ends. A port that somebody else has is told, and no more: what
// the agent does for the machine does not hang on it.
func (s *Server) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for port, handler := range map[int]http.Handler{s.Health: s.health(), s.Metrics: s.metrics()} {
		all.Go(func() {
			if err := serve(ctx, port, handler); err != nil {
				s.Log.Warn("health or metrics are not served", "error", err)
			}
		})
	}
	all.Wait()
	return nil
}

func (s *Server) health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

func (s *Server) metrics() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		s.Counts.write(w)
	})
	return mux
}

func serve(ctx context.Context, port int, h http.Handler) error {
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", at, err)
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve at %s: %w", at, err)
	}
	return nil
}
