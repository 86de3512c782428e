package apiserver

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

// What was asked early is the answer to the first who wants to know of this Node, once;
// of another one, and without a credential, nothing was asked.
func TestAhead(t *testing.T) {
	var asked atomic.Int64
	m := withCredential(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		answer(w, 200, nodeJSON)
	})
	a := &Ahead{}
	nodes := Nodes{Host: m, Ahead: a}
	get := func(node string, want int64) {
		t.Helper()
		s, err := nodes.Open(nodeKubeconfig, node)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(2) {
			if n, err := s.Get(t.Context()); err != nil || n.UID != "u1" {
				t.Fatal(n, err)
			}
			if got := asked.Load(); got != want+i {
				t.Errorf("asked %d times, want %d", got, want+i)
			}
		}
		asked.Store(0)
	}
	a.Ask(t.Context(), m, nodeKubeconfig, "n1")
	<-a.asked.done
	get("n1", 1)
	get("n1", 1)
	a.Ask(t.Context(), m, nodeKubeconfig, "other")
	<-a.asked.done
	asked.Store(0)
	get("n1", 1)
	a.asked.until = time.Now().Add(-time.Second)
	get("other", 1)
	none := &Ahead{}
	if none.Ask(t.Context(), memory.New(), nodeKubeconfig, "n1"); none.take(nodeKubeconfig, "n1") != nil {
		t.Error("something was asked without a credential")
	}
}

// A server that takes the question and gives no answer keeps nobody for longer than
// they want to wait.
func TestAheadOfADeafServer(t *testing.T) {
	end := make(chan struct{})
	m := withCredential(t, func(http.ResponseWriter, *http.Request) { <-end })
	defer close(end)
	a := &Ahead{}
	a.Ask(t.Context(), m, nodeKubeconfig, "n1")
	s, err := Nodes{Host: m, Ahead: a}.Open(nodeKubeconfig, "n1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if n, err := s.Get(ctx); err == nil {
		t.Errorf("got %v", n)
	}
}
