package imagestore

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berth-dev/berth/internal/exitcode"
)

// NotRunningError is a containerd that does not answer.
type NotRunningError struct {
	Socket string
	// Waited is how long it was waited for; 0 where nobody waits.
	Waited time.Duration
	Err    error
}

// Error names the socket and the cause.
func (e *NotRunningError) Error() string {
	after := ""
	if e.Waited > 0 {
		after = " in " + e.Waited.Round(10*time.Millisecond).String()
	}
	return fmt.Sprintf("containerd does not answer on %s%s: %v", e.Socket, after, e.Err)
}

// ExitCode is the published code for it.
func (*NotRunningError) ExitCode() int { return exitcode.Containerd }

// Unwrap returns the cause.
func (e *NotRunningError) Unwrap() error { return e.Err }

// Hint says where to look.
func (e *NotRunningError) Hint() string {
	return "See systemctl status containerd and journalctl -u containerd."
}

// NoSpaceError is a disk of containerd's that is full.
type NoSpaceError struct {
	// Doing is what was asked of containerd.
	Doing string
	Err   error
}

// Error says what did not fit.
func (e *NoSpaceError) Error() string {
	return fmt.Sprintf("containerd: %s: its disk is full: %s", e.Doing, message(e.Err))
}

// ExitCode is the published code for it.
func (*NoSpaceError) ExitCode() int { return exitcode.NoSpace }

// Unwrap returns the cause.
func (e *NoSpaceError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *NoSpaceError) Hint() string {
	return "Free space below containerd's root (by default /var/lib/containerd) and run again: it goes on where it stopped."
}

// DigestError is content that is not what its digest says.
type DigestError struct {
	// Want is the digest, "sha256:…".
	Want string
	Err  error
}

// Error says what differs.
func (e *DigestError) Error() string { return fmt.Sprintf("blob %s: %v", e.Want, e.Err) }

// ExitCode is the published code for it.
func (*DigestError) ExitCode() int { return exitcode.Digest }

// Unwrap returns the cause.
func (e *DigestError) Unwrap() error { return e.Err }

// Error is any other answer of containerd.
type Error struct {
	// Doing is what was asked of it: "create image …".
	Doing string
	Err   error
}

// Error says what was being done.
func (e *Error) Error() string { return fmt.Sprintf("containerd: %s: %s", e.Doing, message(e.Err)) }

// ExitCode is the published code for it.
func (*Error) ExitCode() int { return exitcode.Containerd }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// message is an answer's text without the words that gRPC puts around it.
func message(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// isCode says whether containerd answered with a code.
func isCode(err error, want codes.Code) bool { return err != nil && status.Code(err) == want }

// isFull recognises a full disk: containerd hands the kernel's words on under
// the code Unknown.
func isFull(err error) bool {
	text := message(err)
	return isCode(err, codes.ResourceExhausted) && !strings.Contains(text, "message larger") ||
		strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded")
}

// isLost says whether an answer means that there was none: the connection broke,
// or containerd's own shutdown ended the call.
func isLost(err error) bool { return isCode(err, codes.Unavailable) || isCode(err, codes.Canceled) }

// answer names what containerd said. Errors of others pass.
func answer(doing string, err error) error {
	if _, ok := status.FromError(err); err == nil || !ok {
		return err
	}
	if isFull(err) {
		return &NoSpaceError{Doing: doing, Err: err}
	}
	return &Error{Doing: doing, Err: err}
}
