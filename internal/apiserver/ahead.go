package apiserver

import (
	"context"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// fresh is for how long an answer that came early counts.
const fresh = 2 * time.Second

// Ahead is a look at a Node that began before anybody knew that it is needed. It is
// for one plan. The zero value has asked nothing.
type Ahead struct {
	mu    sync.Mutex
	asked *early
}

// early is the question and its answer, which is there when done is closed.
type early struct {
	path, node string
	session    *nodeSession
	until      time.Time
	done       chan struct{}
	state      *converge.NodeState
	err        error
}

// Ask begins to ask, where the machine has a credential.
func (a *Ahead) Ask(ctx context.Context, h host.FS, path, node string) {
	s, err := openNode(h, path, node, nil)
	if err != nil {
		return // who needs the Node has the error
	}
	e := &early{path: path, node: node, session: s, until: time.Now().Add(fresh), done: make(chan struct{})}
	a.mu.Lock()
	a.asked = e
	a.mu.Unlock()
	go func() {
		defer close(e.done)
		ctx, cancel := context.WithTimeout(ctx, fresh)
		defer cancel()
		e.err = converge.Safely(func() (err error) { e.state, err = s.Get(ctx); return err })
	}()
}

// take is the session of a question that was about this Node; nil if none was.
func (a *Ahead) take(path, node string) converge.NodeSession {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.asked
	if e == nil || e.path != path || e.node != node || time.Now().After(e.until) {
		return nil
	}
	a.asked = nil
	return &earlySession{nodeSession: e.session, first: e}
}

// earlySession answers the first Get with what was asked early.
type earlySession struct {
	*nodeSession
	mu    sync.Mutex
	first *early
}

// Get implements converge.NodeSession.
func (s *earlySession) Get(ctx context.Context) (*converge.NodeState, error) {
	s.mu.Lock()
	e := s.first
	s.first = nil
	s.mu.Unlock()
	if e == nil {
		return s.nodeSession.Get(ctx)
	}
	select {
	case <-e.done:
		return e.state, e.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
