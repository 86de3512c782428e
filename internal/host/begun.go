package host

import "context"

type begunKey struct{}

// WithBegun has f called, at most once for each job, as soon as systemd tells that the unit
// of a start or restart asked for with ctx runs its own program: what comes before it, as
// ExecStartPre=, is over. Of a unit of which systemd does not tell f is not called. f must
// not wait.
func WithBegun(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, begunKey{}, f)
}

// Begun is what WithBegun has called; nil if there is none.
func Begun(ctx context.Context) func() {
	f, _ := ctx.Value(begunKey{}).(func())
	return f
}
