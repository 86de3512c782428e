package kind

import "context"

// Report is what an action says of itself while it goes on.
type Report struct {
	// Detail is the last word; "" for progress.
	Detail string
	// Bytes are those that it has moved, of Total: -1 if unknown.
	Bytes, Total int64
}

type reporterKey struct{}

// WithReporter gives an action somebody to report to.
func WithReporter(ctx context.Context, tell func(Report)) context.Context {
	return context.WithValue(ctx, reporterKey{}, tell)
}

// Progress says how many bytes of how many (-1 if unknown) the action that ctx
// belongs to has moved. The observer gets its span again, still without End.
func Progress(ctx context.Context, done, total int64) {
	report(ctx, Report{Bytes: done, Total: total})
}

// Detail sets what the action's span says when it has ended.
func Detail(ctx context.Context, text string, bytes int64) {
	report(ctx, Report{Detail: text, Bytes: bytes})
}

func report(ctx context.Context, r Report) {
	if tell, ok := ctx.Value(reporterKey{}).(func(Report)); ok {
		tell(r)
	}
}
