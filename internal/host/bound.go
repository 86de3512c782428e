package host

import (
	"context"
	"fmt"
	"time"
)

// BoundError is the cause of a context that ended since what it was for took too long,
// without a deadline of whoever asked for it.
type BoundError struct{ After time.Duration }

// Error says how long it was waited.
func (e *BoundError) Error() string { return fmt.Sprintf("has not ended within %s", e.After) }

// Unwrap makes it what the end of a context's time always is.
func (e *BoundError) Unwrap() error { return context.DeadlineExceeded }
