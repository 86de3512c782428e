package apiserver

import (
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

const nodeKubeconfig = "/var/lib/kubelet/kubeconfig"

// session opens a session of node n1 with a server.
func session(t *testing.T, h http.HandlerFunc) converge.NodeSession {
	t.Helper()
	n, err := Nodes{Host: withCredential(t, h)}.Open(nodeKubeconfig, "n1")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// withCredential is a machine that has joined a server.
func withCredential(t *testing.T, h http.HandlerFunc) *memory.Host {
	t.Helper()
	s, ca := serve(t, h)
	m := memory.New()
	text, err := kubeconfig.ForKubelet(s.URL, "/ca.crt", "/pair.pem")
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := makePair(t, pkix.Name{CommonName: "system:node:n1"}, "n1")
	m.Put(nodeKubeconfig, string(text), 0o600)
	m.Put("/ca.crt", ca, 0o644)
	m.Put("/pair.pem", string(certificate)+string(key), 0o600)
	return m
}

func answer(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

const nodeJSON = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u1","labels":{"a":"1"}},"spec":{"taints":[{"key":"gpu","value":"1","effect":"NoSchedule"}]}}`

func TestNodeSession(t *testing.T) {
	var patch map[string]any
	n := session(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/nodes/n1" {
			answer(w, 404, `{}`)
			return
		}
		if r.Method == http.MethodPatch {
			if got := r.Header.Get("Content-Type"); got != "application/merge-patch+json" {
				t.Errorf("content type %q", got)
			}
			_ = json.NewDecoder(r.Body).Decode(&patch)
		}
		answer(w, 200, nodeJSON)
	})
	want := &converge.NodeState{UID: "u1", Labels: map[string]string{"a": "1"}, Taints: []desired.Taint{{Key: "gpu", Value: "1", Effect: string(core.TaintEffectNoSchedule)}}}
	got, err := n.Get(t.Context())
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	one := "1"
	if got, err = n.Label(t.Context(), "u1", map[string]*string{"a": &one, "gone": nil}); err != nil || got.Labels["a"] != "1" {
		t.Error(got, err)
	}
	if d := cmp.Diff(map[string]any{"metadata": map[string]any{"uid": "u1", "labels": map[string]any{"a": "1", "gone": nil}}}, patch); d != "" {
		t.Error(d)
	}
}

func TestNodeSessionErrors(t *testing.T) {
	status := func(code int, reason string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			answer(w, code, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"`+reason+`","message":"m"}`)
		}
	}
	if got, err := session(t, status(404, "NotFound")).Get(t.Context()); got != nil || err != nil {
		t.Errorf("no Node: %v, %v", got, err)
	}
	if _, err := session(t, status(401, "Unauthorized")).Get(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Errorf("unauthorized: %v", err)
	}
	if _, err := session(t, status(409, "Conflict")).Label(t.Context(), "u", nil); !apierrors.IsConflict(err) {
		t.Errorf("another Node: %v", err)
	}
	if _, err := (Nodes{Host: memory.New()}).Open(nodeKubeconfig, "n1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no kubeconfig: %v", err)
	}
	m := memory.New()
	m.Put(nodeKubeconfig, "{", 0o600)
	if _, err := (Nodes{Host: m}).Open(nodeKubeconfig, "n1"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("torn kubeconfig: %v", err)
	}
}

// TestNodeAwaited: a watch that ends is opened again, and a Node that goes is none.
func TestNodeAwaited(t *testing.T) {
	watches := 0
	n := session(t, func(w http.ResponseWriter, _ *http.Request) {
		watches++
		switch watches {
		case 1:
			answer(w, 500, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","code":500}`)
		case 2:
			answer(w, 200, `{"type":"DELETED","object":`+nodeJSON+`}`)
		default:
			answer(w, 200, `{"type":"ADDED","object":`+nodeJSON+`}`)
		}
	})
	if got, err := n.Await(t.Context()); err != nil || got.UID != "u1" || watches != 3 {
		t.Errorf("%v, %v after %d watches", got, err, watches)
	}
}
