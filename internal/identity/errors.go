package identity

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
)

// Reason says why no certificate was obtained.
type Reason string

// The reasons.
const (
	// ReasonNoToken: there is no valid certificate and no token to get one with.
	ReasonNoToken Reason = "no-token"
	// ReasonUnauthorized: the server does not know the token, or it has expired.
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonForbidden: the token may not request certificates.
	ReasonForbidden Reason = "forbidden"
	// ReasonDenied: somebody denied the request.
	ReasonDenied Reason = "denied"
	// ReasonFailed: the signer refused the request.
	ReasonFailed Reason = "failed"
	// ReasonPending: nobody has approved the request in time.
	ReasonPending Reason = "pending"
	// ReasonUnsigned: the request is approved but nobody has signed it in time.
	ReasonUnsigned Reason = "unsigned"
	// ReasonTLS: the server's certificate is not signed by the contract's CA.
	ReasonTLS Reason = "tls"
	// ReasonUnreachable: the server did not answer.
	ReasonUnreachable Reason = "unreachable"
	// ReasonRejected: the server refused the request as it is.
	ReasonRejected Reason = "rejected"
	// ReasonUnusable: what was issued does not serve: another name, another key,
	// or not valid by this machine's clock.
	ReasonUnusable Reason = "unusable"
	// ReasonTaken: another machine is the Node of that name, and its kubelet runs.
	ReasonTaken Reason = "name-taken"
)

// Error is a certificate that was not obtained.
type Error struct {
	Reason Reason
	Node   string
	Server string
	// Request is the certificate signing request's name, once it was sent; Since
	// is when the server received it.
	Request string
	Since   time.Time
	Remedy  string
	// Err is the cause; *apiserver.Error where the server was asked.
	Err error
}

// Error says what was asked for, and the cause.
func (e *Error) Error() string {
	text := "client certificate for node " + e.Node
	if e.Request != "" {
		text += " (request " + e.Request + ")"
	}
	return fmt.Sprintf("%s: %s: %v", text, e.Reason, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint is the remedy.
func (e *Error) Hint() string { return e.Remedy }

// ExitCode is the published code for the reason; 0 where that is the connection,
// which has codes of its own.
func (e *Error) ExitCode() int {
	switch e.Reason {
	case "", ReasonUnreachable:
		return 0
	case ReasonTLS:
		return exitcode.Untrusted
	}
	return exitcode.Credential
}

// ReasonOf returns the reason that an error carries, or "".
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}
