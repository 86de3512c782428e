package imagestore

import (
	"context"
	"sync"

	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Pulse tells whether containerd lives. It keeps its connection from one question to
// the next for as long as containerd answers: to make one costs more than to ask. The
// zero value is ready; it may be used by several goroutines.
type Pulse struct {
	store Store
	mu    sync.Mutex
	kept  *session
}

// Answers asks containerd for its version; nil says that it lives. It hardly waits:
// where containerd does not run, the error is a *NotRunningError at once, and where
// it is mute, after a few seconds.
func (p *Pulse) Answers(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept != nil && p.kept.version(ctx) == nil {
		return nil
	}
	p.close() // it may be that of a containerd that has ended
	c, err := p.store.open()
	if err != nil {
		return err
	}
	p.kept, c.at = c, c.at.hasty()
	if err = c.reach(ctx); err == nil {
		err = c.version(ctx)
	}
	if err != nil {
		p.close()
	}
	return err
}

// Close ends the connection; the next question makes another.
func (p *Pulse) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

func (p *Pulse) close() {
	if p.kept != nil {
		p.kept.close()
		p.kept = nil
	}
}

// reach connects, unless nobody listens.
func (c *session) reach(ctx context.Context) error {
	if err := c.glance(ctx); err != nil {
		return err
	}
	return c.connected(ctx)
}

// version asks for containerd's version.
func (c *session) version(ctx context.Context) error {
	if _, err := versionapi.NewVersionClient(c.conn).Version(ctx, &emptypb.Empty{}); err != nil {
		return &Error{Doing: "ask for its version", Err: err}
	}
	return nil
}
