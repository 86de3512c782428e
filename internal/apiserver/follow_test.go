package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
)

// shelf is an API server that has one object or none, and tells of it as the
// real one does.
type shelf struct {
	mu       sync.Mutex
	kind     string // with its version, as JSON has it
	path     string
	name     string
	note     string // in the object's annotation; "" is no object
	version  int
	gone     bool // the object's last change was its end
	noStream bool // knows no initial events
	refusal  int
	expired  int // watches that are answered with 410
	changed  chan struct{}
	cut      chan struct{}
	asked    []string
	users    []string
}

func newShelf(kind, path, name string) *shelf {
	return &shelf{kind: kind, path: path, name: name, version: 10, changed: make(chan struct{}), cut: make(chan struct{})}
}

func (s *shelf) set(note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.note = note == "" && s.note != "", note
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// with changes the server itself and ends what is watched.
func (s *shelf) with(change func(*shelf)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *shelf) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, " ")
}

func (s *shelf) object(version int, note string) string {
	return fmt.Sprintf(`{%s,"metadata":{"name":%q,"resourceVersion":"%d","annotations":{"note":%q}}}`, s.kind, s.name, version, note)
}

func (s *shelf) list(w http.ResponseWriter) {
	items := ""
	if s.note != "" {
		items = s.object(s.version, s.note)
	}
	answer(w, 200, fmt.Sprintf(`{%s,"metadata":{"resourceVersion":"%d"},"items":[%s]}`, strings.Replace(s.kind, `",`, `List",`, 1), s.version, items))
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	q := r.URL.Query()
	ask := "list"
	if q.Get("watch") != "" {
		ask = "watch:" + q.Get("resourceVersion")
	}
	if q.Get("sendInitialEvents") != "" {
		ask = "stream"
	}
	s.asked = append(s.asked, ask)
	if len(r.TLS.PeerCertificates) > 0 {
		s.users = append(s.users, r.TLS.PeerCertificates[0].Subject.CommonName)
	}
	status := s.refusal
	switch {
	case r.URL.Path != s.path || q.Get("fieldSelector") != "metadata.name="+s.name:
		status = 404
	case status == 0 && s.noStream && ask == "stream":
		status = 422
	}
	if status != 0 {
		s.mu.Unlock()
		answer(w, status, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"refused by a test","code":%d}`, http.StatusText(status), status))
		return
	}
	if ask == "list" {
		defer s.mu.Unlock()
		s.list(w)
		return
	}
	s.mu.Unlock()
	s.watch(w, r, ask == "stream")
}

func (s *shelf) watch(w http.ResponseWriter, r *http.Request, initial bool) {
	w.Header().Set("Content-Type", "application/json")
	tell := func(kind, object string) {
		_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, object)
		_ = http.NewResponseController(w).Flush()
	}
	_ = http.NewResponseController(w).Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expired > 0 && !initial {
		s.expired--
		tell("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}`)
		return
	}
	var version int
	_, _ = fmt.Sscan(r.URL.Query().Get("resourceVersion"), &version)
	if initial {
		if s.note != "" {
			tell("ADDED", s.object(s.version, s.note))
		}
		tell("BOOKMARK", fmt.Sprintf(`{%s,"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, s.kind, s.version))
		version = s.version
	}
	for cut := s.cut; ; {
		if s.version > version {
			version = s.version
			switch {
			case s.gone:
				tell("DELETED", s.object(version, "gone"))
			case s.note != "":
				tell("MODIFIED", s.object(version, s.note))
			}
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
			s.mu.Lock()
		case <-cut:
			s.mu.Lock()
			return
		case <-r.Context().Done():
			s.mu.Lock()
			return
		}
	}
}

// serveCertificates is a server that asks who comes, and believes it.
func serveCertificates(t *testing.T, h http.Handler) Access {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return Access{Server: s.URL, CA: pemCertificate(s.Certificate().Raw)}
}

func (a Access) as(t *testing.T, user string) Access {
	t.Helper()
	a.Certificate, a.Key = makePair(t, pkix.Name{CommonName: user}, user)
	return a
}

// followed is a Secret that is being followed.
type followed struct {
	t      *testing.T
	client *Client
	access Access
	seen   chan string
	failed chan error
}

func followSecret(t *testing.T, s *shelf) *followed {
	t.Helper()
	f := &followed{t: t, access: serveCertificates(t, s), seen: make(chan string, 100), failed: make(chan error, 100)}
	var err error
	if f.client, err = NewClient(f.access.as(t, "first")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.client.FollowSecret(ctx, "kube-system", "pool", Follower[core.Secret]{
			See: func(s *core.Secret) {
				if s == nil {
					f.seen <- "none"
					return
				}
				f.seen <- s.Annotations["note"]
			},
			Fail: func(err error) { f.failed <- err },
		})
	}()
	t.Cleanup(func() { cancel(); <-ended; f.client.Close() })
	return f
}

func (f *followed) wants(want ...string) {
	f.t.Helper()
	for _, w := range want {
		select {
		case got := <-f.seen:
			if got != w {
				f.t.Fatalf("saw %q, want %q", got, w)
			}
		case <-time.After(20 * time.Second):
			f.t.Fatalf("saw nothing, want %q", w)
		}
	}
}

func (f *followed) wantsFailure(text string) {
	f.t.Helper()
	select {
	case err := <-f.failed:
		if !strings.Contains(err.Error(), text) {
			f.t.Fatalf("failed with %v, want %q", err, text)
		}
	case <-time.After(20 * time.Second):
		f.t.Fatalf("no failure was told, want %q", text)
	}
}

func secretShelf() *shelf {
	return newShelf(`"kind":"Secret","apiVersion":"v1"`, "/api/v1/namespaces/kube-system/secrets", "pool")
}

func TestFollowTellsOfEachChange(t *testing.T) {
	s := secretShelf()
	f := followSecret(t, s)
	f.wants("none")
	s.set("a")
	f.wants("a")
	s.set("b")
	f.wants("b")
	s.set("")
	f.wants("none")
	s.set("c")
	f.wants("c")
	if got := s.requests(); got != "stream" {
		t.Errorf("one watch is enough, asked %s", got)
	}
}

func TestFollowListsWhereTheServerDoesNotStream(t *testing.T) {
	s := secretShelf()
	s.noStream, s.note = true, "a"
	f := followSecret(t, s)
	f.wants("a")
	s.set("b")
	f.wants("b")
	if got := s.requests(); got != "stream list watch:10" {
		t.Errorf("asked %s", got)
	}
	if len(f.failed) > 0 {
		t.Errorf("told of %v", <-f.failed)
	}
}

func TestFollowGoesOnWhereAWatchEnded(t *testing.T) {
	s := secretShelf()
	s.note = "a"
	f := followSecret(t, s)
	f.wants("a")
	s.set("b")
	f.wants("b")
	s.with(func(*shelf) {})
	s.set("c")
	f.wants("c")
	if got := s.requests(); got != "stream watch:11" {
		t.Errorf("asked %s", got)
	}
}

func TestFollowBeginsAnewWhereTheVersionExpired(t *testing.T) {
	s := secretShelf()
	s.note = "a"
	f := followSecret(t, s)
	f.wants("a")
	s.set("b")
	f.wants("b")
	s.with(func(s *shelf) { s.expired, s.note = 1, "c" })
	f.wants("c")
	if got := s.requests(); got != "stream watch:11 stream" {
		t.Errorf("asked %s", got)
	}
}

func TestFollowTellsWhatKeepsItFromSeeing(t *testing.T) {
	for status, text := range map[int]string{401: "refused by a test", 403: "refused by a test", 429: "", 500: "refused by a test", 503: ""} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s := secretShelf()
			s.note, s.refusal = "a", status
			f := followSecret(t, s)
			f.wantsFailure(text)
			s.with(func(s *shelf) { s.refusal = 0 })
			f.wants("a")
		})
	}
}

func TestFollowShowsARenewedCertificate(t *testing.T) {
	s := secretShelf()
	f := followSecret(t, s)
	f.wants("none")
	s.set("a")
	f.wants("a")
	if err := f.client.Renew(f.access.as(t, "second")); err != nil {
		t.Fatal(err)
	}
	for { // until the watch stands again
		s.mu.Lock()
		last := s.users[len(s.users)-1]
		s.mu.Unlock()
		if last == "second" {
			break
		}
		runtime.Gosched()
	}
	s.set("b")
	f.wants("b")
	if err := f.client.Renew(Access{Server: f.access.Server, CA: []byte("nothing")}); err == nil {
		t.Error("a CA without a certificate is taken")
	}
	s.set("c")
	f.wants("c")
	if len(f.failed) > 0 {
		t.Errorf("told of %v", <-f.failed)
	}
}

// TestFollowEndsWithItsContext also ends in the pause after a refused connection,
// and leaves no goroutine.
func TestFollowEndsWithItsContext(t *testing.T) {
	for name, arrange := range map[string]func(*httptest.Server){
		"watching": func(*httptest.Server) {},
		"refused":  func(s *httptest.Server) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			shelf := secretShelf()
			s, ca := serve(t, shelf)
			arrange(s)
			c, err := NewClient(Access{Server: s.URL, CA: []byte(ca)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended, told := make(chan struct{}), make(chan struct{}, 100)
			go func() {
				defer close(ended)
				c.FollowSecret(ctx, "kube-system", "pool", Follower[core.Secret]{See: func(*core.Secret) { told <- struct{}{} }, Fail: func(error) { told <- struct{}{} }})
			}()
			for range map[string]int{"watching": 1, "refused": 3}[name] {
				<-told
			}
			cancel()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Fatal("goes on")
			}
			c.Close()
			noneLeft(t, "tools/cache", "StreamWatcher", "apiserver.follow")
		})
	}
}

// noneLeft waits until no goroutine of this process is in certain functions.
func noneLeft(t *testing.T, functions ...string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left := ""
		for _, f := range functions {
			if strings.Contains(string(stacks), f) {
				left = f
			}
		}
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left in %s:\n%s", left, stacks)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestFollowNodeAndLease(t *testing.T) {
	node := newShelf(`"kind":"Node","apiVersion":"v1"`, "/api/v1/nodes", "n1")
	lease := newShelf(`"kind":"Lease","apiVersion":"coordination.k8s.io/v1"`, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "pool")
	node.note, lease.note = "a", "b"
	mux := http.NewServeMux()
	mux.Handle("/api/v1/nodes", node)
	mux.Handle("/apis/coordination.k8s.io/", lease)
	c, err := NewClient(serveCertificates(t, mux).as(t, "n1"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	fail := func(err error) { t.Errorf("can't see it: %v", err) }
	var nodes Latest[core.Node]
	var leases Latest[coordination.Lease]
	var watches sync.WaitGroup
	watches.Go(func() { c.FollowNode(ctx, "n1", Follower[core.Node]{See: nodes.Set, Fail: fail}) })
	watches.Go(func() {
		c.FollowLease(ctx, "kube-system", "pool", Follower[coordination.Lease]{See: leases.Set, Fail: fail})
	})
	for n := range nodes.Each(ctx) {
		if n.Annotations["note"] != "a" {
			t.Errorf("Node %v", n)
		}
		break
	}
	for l := range leases.Each(ctx) {
		if l.Annotations["note"] != "b" {
			t.Errorf("Lease %v", l)
		}
		break
	}
	cancel()
	watches.Wait()
}

func TestFollowSeesNothingElse(t *testing.T) {
	for name, stream := range map[string]string{
		"another kind": `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"pool"}}}`,
		"garbage":      `{"type":"ADDED","object":null}{`,
		"no kind":      `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "" {
					stream = "]"
				}
				answer(w, 200, stream)
			}))
			c, err := NewClient(Access{Server: s.URL, CA: []byte(ca)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var failure error
			c.FollowSecret(ctx, "kube-system", "pool", Follower[core.Secret]{
				See:  func(s *core.Secret) { t.Errorf("saw %v", s) },
				Fail: func(err error) { failure = err; cancel() },
			})
			if failure == nil {
				t.Error("nothing was told")
			}
		})
	}
}
