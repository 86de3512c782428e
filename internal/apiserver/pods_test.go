package apiserver

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const statusOf = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"`

// TestCallsOfPods: what a node asks of its pods, and what counts as done.
func TestCallsOfPods(t *testing.T) {
	var got, sent, query string
	code, reply := 200, ""
	s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, sent, query = r.Method+" "+r.URL.Path, string(body), r.URL.RawQuery
		if r.Method != http.MethodGet && r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s as %q", r.Method, r.Header.Get("Content-Type"))
		}
		answer(w, code, reply)
	}))
	c, err := NewClient(Access{Server: s.URL, CA: []byte(ca)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	reply = `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"web","namespace":"default"}}]}`
	pods, err := c.ListPods(t.Context(), "n1")
	if err != nil || len(pods) != 1 || got != "GET /api/v1/pods" || query != "fieldSelector=spec.nodeName%3Dn1" {
		t.Errorf("%v, %v after %s?%s", pods, err, got, query)
	}

	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}}
	evict := func() error { return c.Evict(t.Context(), pod) }
	remove := func() error { return c.DeleteNode(t.Context(), "n1", "u2") }
	for _, tc := range []struct {
		name, reason string
		code         int
		call         func() error
		path         string
		is           func(error) bool
	}{
		{"evicted", "", 201, evict, "POST /api/v1/namespaces/default/pods/web/eviction", nil},
		{"gone", "NotFound", 404, evict, "POST /api/v1/namespaces/default/pods/web/eviction", nil},
		{"another one", "Conflict", 409, evict, "POST /api/v1/namespaces/default/pods/web/eviction", nil},
		{"kept by a budget", "TooManyRequests", 429, evict, "POST /api/v1/namespaces/default/pods/web/eviction", apierrors.IsTooManyRequests},
		{"deleted", "", 200, remove, "DELETE /api/v1/nodes/n1", nil},
		{"no Node", "NotFound", 404, remove, "DELETE /api/v1/nodes/n1", nil},
		{"another Node", "Conflict", 409, remove, "DELETE /api/v1/nodes/n1", apierrors.IsConflict},
		{"not allowed", "Forbidden", 403, remove, "DELETE /api/v1/nodes/n1", apierrors.IsForbidden},
	} {
		code, reply = tc.code, statusOf+tc.reason+`"}`
		if tc.reason == "" {
			reply = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
		}
		if err := tc.call(); (err == nil) != (tc.is == nil) || err != nil && !tc.is(err) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got != tc.path {
			t.Errorf("%s: %s", tc.name, got)
		}
		want := `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web","namespace":"default"},"deleteOptions":{"preconditions":{"uid":"u1"}}}`
		if strings.HasPrefix(got, "DELETE") {
			want = `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u2"}}`
		}
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}
