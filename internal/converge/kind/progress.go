package kind

import "context"

// Reporter is told what an action says of itself while it goes on.
type Reporter interface {
	Progress(done, total int64)
	Detail(text string, bytes int64)
}

type reporterKey struct{}

// WithReporter gives an action its reporter.
func WithReporter(ctx context.Context, r Reporter) context.Context {
	return context.WithValue(ctx, reporterKey{}, r)
}

// Progress says how many bytes of how many (-1 if unknown) the action that ctx
// belongs to has moved. The observer gets its span again, still without End.
func Progress(ctx context.Context, done, total int64) {
	if r, ok := ctx.Value(reporterKey{}).(Reporter); ok {
		r.Progress(done, total)
	}
}

// Detail sets what the action's span says when it has ended.
func Detail(ctx context.Context, text string, bytes int64) {
	if r, ok := ctx.Value(reporterKey{}).(Reporter); ok {
		r.Detail(text, bytes)
	}
}
