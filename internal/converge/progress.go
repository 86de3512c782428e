package converge

import (
	"context"
	"sync"
)

// tellKey is the context key of an action's own *telling.
type tellKey struct{}

// telling is what an action says of itself while it goes on.
type telling struct {
	mu   sync.Mutex
	span Span
	tell func(Span)
}

// Progress says how many bytes of how many (-1 if unknown) the action that ctx
// belongs to has moved. The observer gets its span again, still without End.
func Progress(ctx context.Context, done, total int64) {
	t, ok := ctx.Value(tellKey{}).(*telling)
	if !ok {
		return
	}
	t.mu.Lock()
	t.span.Bytes, t.span.Total = done, total
	span := t.span
	t.mu.Unlock()
	t.tell(span)
}

// detail sets what the action's span says when it has ended.
func detail(ctx context.Context, text string, bytes int64) {
	if t, ok := ctx.Value(tellKey{}).(*telling); ok {
		t.mu.Lock()
		t.span.Detail, t.span.Bytes, t.span.Total = text, bytes, 0
		t.mu.Unlock()
	}
}
