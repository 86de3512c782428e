package apiserver

import (
	"net/http"
	"testing"

	core "k8s.io/api/core/v1"
)

func TestStands(t *testing.T) {
	for name, c := range map[string]struct {
		arrange        func(*world)
		healthz        http.HandlerFunc
		healthy, ready bool
	}{
		"ready":         {func(w *world) { w.nodes = []*core.Node{w.node(core.ConditionTrue, "")} }, healthy, true, true},
		"health is off": {func(w *world) { w.nodes = []*core.Node{w.node(core.ConditionTrue, "")} }, nil, false, true},
		"not ready":     {func(w *world) { w.nodes = []*core.Node{w.node(core.ConditionFalse, "")} }, healthy, true, false},
		"of another boot": {func(w *world) {
			n := w.node(core.ConditionTrue, "")
			n.Status.NodeInfo.BootID = "other"
			w.nodes = []*core.Node{n}
		}, healthy, true, false},
		"refused":       {func(w *world) { w.status = http.StatusUnauthorized }, healthy, true, false},
		"away":          {func(w *world) { w.api.Close() }, healthy, true, false},
		"no credential": {func(w *world) { _ = w.m.Remove(testKubeconfig) }, healthy, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).credential().start()
			c.arrange(w)
			if healthy, ready := w.watcher(c.healthz).Stands(t.Context()); healthy != c.healthy || ready != c.ready {
				t.Errorf("healthy %v, ready %v", healthy, ready)
			}
		})
	}
}

// Who refuses is not away.
func TestAway(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(*world)
		away    bool
	}{
		"answers":        {func(w *world) { w.nodes = []*core.Node{w.node(core.ConditionFalse, "")} }, false},
		"refuses":        {func(w *world) { w.status = http.StatusUnauthorized }, false},
		"forbids":        {func(w *world) { w.status = http.StatusForbidden }, false},
		"has no Node":    {func(*world) {}, false},
		"is not trusted": {func(w *world) { w.m.Put("/etc/kubernetes/certs/ca.crt", otherCA(t), 0o644) }, false},
		"is broken":      {func(w *world) { w.status = http.StatusServiceUnavailable }, true},
		"is mute":        {func(w *world) { w.mute = true }, true},
		"is gone":        {func(w *world) { w.api.Close() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t).credential().start()
			c.arrange(w)
			if err := w.watcher(healthy).Away(t.Context()); (err != nil) != c.away {
				t.Errorf("%v", err)
			}
		})
	}
}

// otherCA is another cluster's.
func otherCA(t *testing.T) string {
	t.Helper()
	_, ca := serve(t, http.NotFoundHandler())
	return ca
}
