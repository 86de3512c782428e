package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/exitcode"
)

// DownloadError is an artifact that could not be had from any of its URLs.
type DownloadError struct {
	Name string
	// URL is the last one tried, without its query: that may be a secret.
	URL string
	// Status is the HTTP status of the last answer; 0 if there was none.
	Status   int
	Attempts int
	Elapsed  time.Duration
	Err      error
}

// Error names the artifact, the URL and the cause.
func (e *DownloadError) Error() string {
	return fmt.Sprintf("download %s from %s (%d attempts in %s): %v", e.Name, e.URL, e.Attempts, e.Elapsed.Round(10*time.Millisecond), e.Err)
}

// Unwrap returns the cause.
func (e *DownloadError) Unwrap() error { return e.Err }

// PullError is a container image that its registry did not give.
type PullError struct {
	// Source is its reference, "oci://…".
	Source string
	Err    error
}

// Error names the image and the cause.
func (e *PullError) Error() string { return fmt.Sprintf("pull %s: %v", e.Source, e.Err) }

// Unwrap returns the cause.
func (e *PullError) Unwrap() error { return e.Err }

// DigestError is content other than what was promised.
type DigestError struct {
	URL string
	// Want and Got are sha256 in hex. Source says who promised Want.
	Want, Got string
	Source    string
}

// Error shows both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s: sha256 is %s, want %s (from %s)", e.URL, e.Got, e.Want, e.Source)
}

// ExitCode is the code for content that must not be used.
func (*DigestError) ExitCode() int { return exitcode.Digest }

// RefusedError is a URL that is not fetched from, whatever it holds.
type RefusedError struct {
	URL    string
	Reason string
	// NoDigest: it would be taken with a digest.
	NoDigest bool
}

// Error says why.
func (e *RefusedError) Error() string { return e.URL + ": refused: " + e.Reason }

// ExitCode is the code for content that must not be used.
func (*RefusedError) ExitCode() int { return exitcode.Digest }

// UnpackError is an archive that can't be read or does not hold what is wanted.
type UnpackError struct {
	URL string
	// Missing are wanted members that the archive does not hold; Have are some of
	// those that it does.
	Missing, Have []string
	Err           error
}

// Error says what is wrong with the archive.
func (e *UnpackError) Error() string {
	if len(e.Missing) > 0 {
		return fmt.Sprintf("unpack %s: no %s in it; it holds %s", e.URL, strings.Join(e.Missing, ", "), strings.Join(e.Have, ", "))
	}
	return fmt.Sprintf("unpack %s: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *UnpackError) Unwrap() error { return e.Err }

// Hint says what to compare.
func (e *UnpackError) Hint() string {
	return "The address answers, but with another archive: check the URL, and that it is one for this architecture."
}

// MismatchError is a program that is not the one that was asked for: of another
// version, or for another kind of machine.
type MismatchError struct {
	URL string
	// What is "version" or "architecture".
	What      string
	Got, Want string
}

// Error shows both.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: %s is %s, want %s", e.URL, e.What, e.Got, e.Want)
}

// Hint says what to compare.
func (e *MismatchError) Hint() string {
	return "The address gives another build of the program: check the " + e.What + " in the URL."
}

// AbsentError is an artifact whose files must be in the image and are not.
type AbsentError struct {
	Name  string
	Paths []string
}

// Error names the files.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("%s is not in the image (%s) and the contract gives no URL for it", e.Name, strings.Join(e.Paths, ", "))
}

// statusError is an answer other than the content.
type statusError struct {
	status int
	// wait is for how long the server asks to be left alone.
	wait time.Duration
	// err says more, if anybody did.
	err error
}

// Error shows the status.
func (e *statusError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", e.status, http.StatusText(e.status)))
}

// Unwrap returns what says more.
func (e *statusError) Unwrap() error { return e.err }

// proxyError is a proxy that does not connect.
type proxyError struct{ err error }

// Error says who refused.
func (e *proxyError) Error() string { return "the proxy answers: " + e.err.Error() }

// Unwrap returns the answer.
func (e *proxyError) Unwrap() error { return e.err }

// statusOf is the HTTP status in an error, or 0.
func statusOf(err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	return 0
}

// isContent says that an answer came and is not what was wanted, or that none may be asked for.
func isContent(err error) bool {
	_, digest := errors.AsType[*DigestError](err)
	_, unpack := errors.AsType[*UnpackError](err)
	_, refused := errors.AsType[*RefusedError](err)
	_, other := errors.AsType[*MismatchError](err)
	_, unverified := errors.AsType[*remote.UnverifiedError](err)
	return digest || unpack || refused || other || unverified
}

// hopeless says that this source will give nothing else.
func hopeless(err error) bool {
	status := statusOf(err)
	transient := status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests
	return isContent(err) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || status >= 400 && status < 500 && !transient
}

// local says that the machine itself is the cause: other URLs don't help.
func local(err error) bool {
	_, ok := errors.AsType[*hostError](err)
	return ok
}
