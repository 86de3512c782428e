package apiserver

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// A try that went well is the answer to the first who asks for the same server, once, and
// its connection is handed on.
func TestEarlyProbe(t *testing.T) {
	var asked atomic.Int64
	s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		refuse(w, r)
	}))
	c := checkOf(s.Listener.Addr(), ca, time.Minute)
	shared, early := &Connections{}, &EarlyProbe{}
	probe := func(step string, c *desired.Check, want int64) {
		t.Helper()
		if err := (Prober{Connections: shared, Early: early}).Probe(t.Context(), c); err != nil {
			t.Fatal(step, err)
		}
		if got := asked.Swap(0); got != want {
			t.Errorf("%s: asked %d times, want %d", step, got, want)
		}
		if len(shared.idle) != 1 {
			t.Errorf("%s: %d connections are handed on", step, len(shared.idle))
		}
		shared.take(connectionKey{host: hostPort(c), ca: c.CA}).CloseIdleConnections()
	}
	begin := func() {
		next := 0
		early.Begin(t.Context(), c, func(*Connections) { next++ })
		<-early.begun.done
		early.begun.next.Wait()
		if next != 1 {
			t.Errorf("what comes next began %d times before the answer was there", next)
		}
		if got := asked.Swap(0); got != 1 {
			t.Errorf("asked %d times early", got)
		}
	}
	probe("nothing began", c, 1)
	begin()
	probe("began", c, 0)
	probe("once more", c, 1)
	begin()
	other := *c
	other.CA += "\n"
	probe("another CA", &other, 1)
	early.begun.until = time.Now().Add(-time.Second)
	probe("too old", c, 1)
}

// What comes next has the connection before the server has answered, and a second one goes on
// with the try that is on its way.
func TestEarlyProbeHandsOnATrustedConnection(t *testing.T) {
	taken := make(chan struct{})
	var asked atomic.Int64
	s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-taken
		refuse(w, r)
	}))
	c := checkOf(s.Listener.Addr(), ca, time.Minute)
	early := &EarlyProbe{}
	early.Begin(t.Context(), c, func(*Connections) {})
	early.Begin(t.Context(), c, func(over *Connections) {
		if over.take(connectionKey{host: hostPort(c), ca: c.CA}) == nil {
			t.Error("the connection is not there")
		}
		close(taken)
	})
	if err := (Prober{Connections: &Connections{}, Early: early}).Probe(t.Context(), c); err != nil || asked.Load() != 1 {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
}

// A server that is not trusted gets no second connection.
func TestEarlyProbeOfAStranger(t *testing.T) {
	s, _ := serve(t, http.HandlerFunc(refuse))
	_, otherCA := selfSigned(t)
	early := &EarlyProbe{}
	early.Begin(t.Context(), checkOf(s.Listener.Addr(), otherCA, time.Minute), func(*Connections) { t.Error("the server is trusted") })
	<-early.begun.done
	early.begun.next.Wait()
	if early.begun.good {
		t.Error("the probe went well")
	}
}

// A try that failed keeps nobody from probing: the server may be there by then.
func TestEarlyProbeThatFails(t *testing.T) {
	_, ca := serve(t, http.HandlerFunc(refuse)) // httptest always serves the same certificate
	addr, open := reserved(t)
	late := httptest.NewUnstartedServer(http.HandlerFunc(refuse))
	_ = late.Listener.Close()
	c, early := checkOf(addr, ca, time.Minute), &EarlyProbe{}
	early.Begin(t.Context(), c, func(*Connections) {})
	<-early.begun.done
	late.Listener = open()
	late.StartTLS()
	defer late.Close()
	shared := &Connections{}
	if err := (Prober{Early: early, Connections: shared}).Probe(t.Context(), c); err != nil {
		t.Error(err)
	}
	if early.begun != nil || len(shared.idle) != 1 {
		t.Errorf("left %v, handed on %d connections", early.begun, len(shared.idle))
	}
	shared.take(connectionKey{host: hostPort(c), ca: c.CA}).CloseIdleConnections()
}

// A server that takes the connection and says nothing keeps nobody for longer than they
// want to wait.
func TestEarlyProbeOfADeafServer(t *testing.T) {
	end := make(chan struct{})
	s, ca := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer close(end)
	c := checkOf(s.Listener.Addr(), ca, time.Minute)
	early := &EarlyProbe{}
	early.Begin(t.Context(), c, func(*Connections) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Prober{Early: early}).Probe(ctx, c); err == nil {
		t.Error("it answered")
	}
}

// The budget of a check holds while it waits for a try that began early.
func TestEarlyProbeIsInTheBudget(t *testing.T) {
	closed, _ := reserved(t)
	c := checkOf(closed, "", time.Millisecond)
	early := &EarlyProbe{begun: &begunProbe{check: c, until: time.Now().Add(time.Hour), done: make(chan struct{})}}
	if e, ok := errors.AsType[*Error]((Prober{Early: early}).Probe(t.Context(), c)); !ok || e.Attempts == 0 {
		t.Errorf("got %v", e)
	}
}

// What failed early is the first attempt, and tells the cause where no time is left.
func TestEarlyProbeIsTheFirstAttempt(t *testing.T) {
	closed, _ := reserved(t)
	c, early := checkOf(closed, "", time.Minute), &EarlyProbe{}
	early.Begin(t.Context(), c, func(*Connections) {})
	<-early.begun.done
	none := *c
	none.Timeout = 0
	e, ok := errors.AsType[*Error]((Prober{Early: early}).Probe(t.Context(), &none))
	if !ok || e.Layer != LayerTCP || e.Attempts < 2 || !errors.Is(e, syscall.ECONNREFUSED) {
		t.Errorf("got %v", e)
	}
}
