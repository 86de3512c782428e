package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// server answers all requests and keeps them.
type server struct {
	mu       sync.Mutex
	requests []string
	bodies   []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.bodies = append(s.bodies, string(body))
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1"}`)
}

func reachable(t *testing.T) (*node, *server) {
	t.Helper()
	s := &server{}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	c, err := apiserver.NewClient(apiserver.Access{Server: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	n := &node{name: "n1"}
	n.client.Store(c)
	return n, s
}

func TestNodeThatIsNotThere(t *testing.T) {
	n := &node{name: "n1"}
	if err := n.Patch(t.Context(), nil, nil); !errors.Is(err, errNoServer) {
		t.Error(err)
	}
	if _, err := n.GetLease(t.Context(), "x", "y"); !errors.Is(err, errNoServer) {
		t.Error(err)
	}
	n, s := reachable(t)
	if err := n.Condition(t.Context(), core.NodeCondition{}); !errors.Is(err, errNoNode) {
		t.Error(err)
	}
	if len(s.requests) > 0 {
		t.Error(s.requests)
	}
}

func TestNodeIsWritten(t *testing.T) {
	n, s := reachable(t)
	now, long := meta.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), meta.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	n.latest.Set(&core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1", UID: "u"}, Status: core.NodeStatus{
		Conditions: []core.NodeCondition{{Type: "C", Status: "True", LastTransitionTime: long}}}})
	if err := n.Patch(t.Context(), map[string]string{"l": "v"}, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	if err := n.Patch(t.Context(), nil, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	if got := s.bodies[1]; got != `{"metadata":{"annotations":{"a":"b"}}}` { // null would take all labels away
		t.Error(got)
	}
	s.requests, s.bodies = s.requests[1:], s.bodies[:1]
	for _, status := range []core.ConditionStatus{"True", "False"} {
		if err := n.Condition(t.Context(), core.NodeCondition{Type: "C", Status: status, LastTransitionTime: now}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"PATCH /api/v1/nodes/n1", "PATCH /api/v1/nodes/n1/status", "PATCH /api/v1/nodes/n1/status"}
	if d := cmp.Diff(want, s.requests); d != "" {
		t.Error(d)
	}
	if s.bodies[0] != `{"metadata":{"annotations":{"a":"b"},"labels":{"l":"v"}}}` {
		t.Error(s.bodies[0])
	}
	for i, want := range []time.Time{long.Time, now.Time} {
		var p struct {
			Status struct{ Conditions []core.NodeCondition }
		}
		if err := json.Unmarshal([]byte(s.bodies[1+i]), &p); err != nil || !p.Status.Conditions[0].LastTransitionTime.Time.Equal(want.Truncate(time.Second)) {
			t.Error(s.bodies[1+i], err)
		}
	}
}

func TestLabels(t *testing.T) {
	h := memory.New()
	c := &config.NodeAgent{Controllers: config.Controllers{OperatingSystemConfig: config.OperatingSystemConfig{KubernetesVersion: "1.34.2"}}}
	want := map[string]string{versionLabel: "1.34.2", "node-role.kubernetes.io/worker": ""}
	if d := cmp.Diff(want, labels(h, c, &reconcile.Target{})); d != "" {
		t.Error(d)
	}
	h.Put(config.Zone, "z1\n", 0o644)
	want = map[string]string{versionLabel: "1.34.2", "node-role.kubernetes.io/control-plane": "", zoneLabel: "z1"}
	if d := cmp.Diff(want, labels(h, c, &reconcile.Target{ControlPlane: true})); d != "" {
		t.Error(d)
	}
	h.Overwrite(config.Zone, " \n")
	if got := labels(h, c, &reconcile.Target{}); got[zoneLabel] != "" {
		t.Error(got)
	}
}

// deaf is a machine that can't be watched.
type deaf struct{ *memory.Host }

func (deaf) Watch(context.Context, host.Watched) (<-chan host.Event, error) {
	return nil, errors.New("no more watches")
}

// Sleep takes its time.
func (deaf) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestWithoutAWatch: a machine that can't be watched is looked at, and ends nothing.
func TestWithoutAWatch(t *testing.T) {
	h := machineWith(configText)
	a := begin(t, h)
	a.Host = deaf{h}
	synctest.Test(t, func(t *testing.T) {
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { done <- a.watchConfig(ctx) }()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(done) > 0 {
			t.Error("it ends: ", <-done)
			return
		}
		h.Overwrite(configFile, otherText)
		if err := <-done; !errors.Is(err, errRestart) {
			t.Error(err)
		}
	})
}

// TestRestartOnNewConfiguration: what the agent is told is read once, so that a
// change ends the process, also one from before the watch.
func TestRestartOnNewConfiguration(t *testing.T) {
	for name, change := range map[string]func(h *memory.Host){
		"configuration": func(h *memory.Host) { h.Overwrite(configFile, otherText) },
		"CA":            func(h *memory.Host) { h.Overwrite(caFile, testCA+testCA) },
		"options":       func(h *memory.Host) { h.Put(config.OptionsPath, "jitter: 0s", 0o600) },
	} {
		for _, early := range []bool{true, false} {
			h := machineWith(configText)
			a := begin(t, h)
			synctest.Test(t, func(t *testing.T) {
				if early {
					change(h)
				}
				done := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { done <- a.watchConfig(ctx) }()
				synctest.Wait()
				_ = h.Chmod(caFile, 0o640) // an event, and no change of what is told
				synctest.Wait()
				if !early && len(done) > 0 {
					t.Errorf("%s: ended by nothing", name)
				}
				change(h)
				if err := <-done; !errors.Is(err, errRestart) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
}
