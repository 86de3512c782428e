package provision

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestANodeThatWasNotReady: only what stood before is asked for after a change. A Node that
// was not Ready reverts nothing, however it stands now, nor does kubelet where it was ill.
func TestANodeThatWasNotReady(t *testing.T) {
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	t.Cleanup(health.Close)
	asked := atomic.Int32{}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
	}))
	t.Cleanup(api.Close)
	_, port, err := net.SplitHostPort(health.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	h := memory.New()
	h.Value("/proc/sys/kernel/hostname", "n1\n")
	h.Put("/opt/bin/kubelet", "program", 0o755)
	h.Put("/etc/systemd/system/kubelet.service", "[Service]\nExecStart=/opt/bin/kubelet\n", 0o644)
	h.Put(kubelet.Kubeconfig, "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: k, cluster: {server: \""+api.URL+"\"}}]\n"+
		"contexts: [{name: c, context: {cluster: k, user: u}}]\nusers: [{name: u, user: {token: t}}]\n", 0o600)
	if err := h.StartUnit(t.Context(), "kubelet.service"); err != nil {
		t.Fatal(err)
	}
	state := func(port string) *desired.State {
		st := &desired.State{Owner: desired.OwnerNode}
		st.Add(&desired.File{Path: kubelet.ConfigFile, Content: desired.Text(`{"healthzBindAddress":"127.0.0.1","healthzPort":` + port + `}`)})
		return st
	}
	w := Watch{h}
	for name, c := range map[string]struct {
		before trial.Standing
		port   string
		fails  bool
		asks   bool
	}{
		"healthy, and still":          {trial.Standing{Healthy: true}, port, false, false},
		"healthy, and no longer":      {trial.Standing{Healthy: true}, "1", true, false},
		"ill, and still":              {trial.Standing{}, "1", false, false},
		"Ready before, and no longer": {trial.Standing{Healthy: true, Ready: true}, port, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			remark, err := w.StandAgain(ctx, state(c.port), c.before)
			if (err != nil) != c.fails || remark != "" || (asked.Load() > 0) != c.asks {
				t.Errorf("%q, %v; the API server was asked %d times", remark, err, asked.Load())
			}
		})
	}
}

// TestWatchAsksKubeletWhereItListens: --wait-for kubelet goes by kubeletConfig.
func TestWatchAsksKubeletWhereItListens(t *testing.T) {
	st := &desired.State{}
	st.Add(&desired.File{Path: kubelet.ConfigFile, Content: desired.Text(`{"healthzPort": 10300}`), Mode: 0o644, Life: desired.Managed})
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	if w := (Watch{memory.New()}).of(st); w.Healthz != "http://127.0.0.1:10300/healthz" {
		t.Errorf("asks %q", w.Healthz)
	}
}
