package imagestore

import (
	"context"
	"sync"
)

// uploads is how many blobs a Store has under way at once: containerd hashes each
// on a core of its own. Each needs two megabytes at most.
const uploads = 3

// turns keeps two imports from sending one blob at the same time, as of a layer
// that two images share: the second finds it stored. It also bounds how many blobs
// are under way.
type turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{}
	slots chan struct{}
}

// take waits for a blob's turn and for a slot.
func (t *turns) take(ctx context.Context, digest string) (done func(), err error) {
	for {
		other, slots := t.claim(digest)
		if other == nil {
			return t.slot(ctx, slots, digest)
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// claim makes the blob the caller's, or says whose end to wait for.
func (t *turns) claim(digest string) (other <-chan struct{}, slots chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken == nil {
		t.taken, t.slots = map[string]chan struct{}{}, make(chan struct{}, uploads)
	}
	if c, ok := t.taken[digest]; ok {
		return c, nil
	}
	t.taken[digest] = make(chan struct{})
	return nil, t.slots
}

func (t *turns) slot(ctx context.Context, slots chan struct{}, digest string) (done func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots; t.free(digest) }, nil
	case <-ctx.Done():
		t.free(digest)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) free(digest string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.taken[digest])
	delete(t.taken, digest)
}
