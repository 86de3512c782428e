package artifact

import (
	"context"
	"io"
)

// origin is a source that gives one blob.
type origin interface {
	// open starts to read at an offset. tag is the validator of an earlier flow
	// ("" for none): an origin that can tell must not continue another version.
	open(ctx context.Context, offset int64, tag string) (*flow, error)
}

// flow is a blob on its way.
type flow struct {
	body io.ReadCloser
	// start is the offset of the first byte that body gives: what was asked for,
	// or 0 from an origin that can only begin again.
	start int64
	// size is that of the whole blob, -1 if unknown.
	size int64
	// tag tells versions of the blob apart; "" if the origin says nothing.
	tag string
}
