package memory

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/internal/host"
)

// lockState is a lock that somebody holds.
type lockState struct {
	holder string
	free   chan struct{}
	once   sync.Once
}

func (l *lockState) release() { l.once.Do(func() { close(l.free) }) }

func (l *lockState) held() bool {
	select {
	case <-l.free:
		return false
	default:
		return true
	}
}

// Lock implements host.Locker.
func (h *Host) Lock(ctx context.Context, p, holder string) (func() error, error) {
	for {
		mine, other, err := h.tryLock(p, holder)
		if err != nil {
			return nil, err
		}
		if mine != nil {
			return func() error { mine.release(); return nil }, nil
		}
		select {
		case <-other.free:
		case <-ctx.Done():
			return nil, &host.LockedError{Path: p, Holder: other.holder}
		}
	}
}

// tryLock returns the caller's lock, or the one that stands in its way.
func (h *Host) tryLock(p, holder string) (mine, other *lockState, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, err := h.locate(p)
	if err != nil {
		return nil, nil, pathError("open", p, err)
	}
	if l := h.locks[p]; l != nil && l.held() {
		return nil, l, nil
	}
	if at.node == nil {
		n := h.newInode(0o600)
		if err := h.add(at, n); err != nil {
			return nil, nil, pathError("open", p, err)
		}
		at.node = n
	}
	if err := regular(at.node); err != nil {
		return nil, nil, pathError("open", p, err)
	}
	at.node.content = []byte(holder + "\n")
	at.node.dirty = true
	mine = &lockState{holder: holder, free: make(chan struct{})}
	h.locks[p] = mine
	return mine, nil, nil
}
