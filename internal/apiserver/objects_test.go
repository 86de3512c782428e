package apiserver

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCallsOfObjects: each call's method, path and body.
func TestCallsOfObjects(t *testing.T) {
	var got []string
	s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var sent struct {
			Kind string
			Meta struct{ Name string } `json:"metadata"`
		}
		_ = json.Unmarshal(body, &sent)
		got = append(got, r.Method+" "+r.URL.Path+" "+sent.Kind+" "+sent.Meta.Name)
		kind, version := "Event", "v1"
		switch {
		case r.URL.Path == "/api/v1/nodes/n1/status":
			kind = "Node"
			if ct := r.Header.Get("Content-Type"); ct != "application/strategic-merge-patch+json" {
				t.Errorf("patch of the status is %s", ct)
			}
		case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/kube-system/secrets/s":
			kind = "Secret"
		case r.URL.Path != "/api/v1/namespaces/default/events" && r.URL.Path != "/api/v1/namespaces/default/events/e":
			kind, version = "Lease", "coordination.k8s.io/v1"
		}
		answer(w, 200, `{"kind":"`+kind+`","apiVersion":"`+version+`","metadata":{"name":"x","resourceVersion":"7"}}`)
	}))
	c, err := NewClient(Access{Server: s.URL, CA: []byte(ca)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lease := &coordination.Lease{ObjectMeta: meta.ObjectMeta{Namespace: "kube-system", Name: "l"}}
	event := &core.Event{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: "e"}}
	for _, call := range []func() (meta.Object, error){
		func() (meta.Object, error) { return c.GetSecret(t.Context(), "kube-system", "s") },
		func() (meta.Object, error) { return c.GetLease(t.Context(), "kube-system", "l") },
		func() (meta.Object, error) { return c.CreateLease(t.Context(), lease) },
		func() (meta.Object, error) { return c.UpdateLease(t.Context(), lease) },
		func() (meta.Object, error) { return c.PatchNodeStatus(t.Context(), "n1", []byte(`{"kind":"patch"}`)) },
		func() (meta.Object, error) { return c.CreateEvent(t.Context(), event) },
	} {
		if o, err := call(); err != nil || o.GetResourceVersion() != "7" {
			t.Errorf("after %v: %v, %v", got, o, err)
		}
	}
	if err := c.PatchEvent(t.Context(), "default", "e", []byte(`{"kind":"patch"}`)); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff([]string{
		"GET /api/v1/namespaces/kube-system/secrets/s  ",
		"GET /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l  ",
		"POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases Lease l",
		"PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l Lease l",
		"PATCH /api/v1/nodes/n1/status patch ",
		"POST /api/v1/namespaces/default/events Event e",
		"PATCH /api/v1/namespaces/default/events/e patch ",
	}, got); d != "" {
		t.Error(d)
	}
}

func TestUpdateOfALeaseThatChangedIsAConflict(t *testing.T) {
	s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
	}))
	c, err := NewClient(Access{Server: s.URL, CA: []byte(ca)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lease := &coordination.Lease{ObjectMeta: meta.ObjectMeta{Namespace: "kube-system", Name: "l"}}
	if _, err := c.UpdateLease(t.Context(), lease); !apierrors.IsConflict(err) || LayerOf(err) != LayerHTTP {
		t.Errorf("error %v", err)
	}
}
