package remote

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
)

// MetadataService stands for a registry in errors of the instance metadata service that
// was asked who the machine is.
const MetadataService = "instance metadata service"

// Subject is what was asked, and of whom.
type Subject struct {
	Registry, Repository string
	// What is in words: "manifest v1.34.0", "blob sha256:…", "token".
	What string
}

// String is registry/repository: what.
func (s Subject) String() string {
	return strings.TrimSuffix(s.Registry+"/"+s.Repository, "/") + ": " + s.What
}

// StatusError is an answer other than what was asked for.
type StatusError struct {
	Subject
	// Status is the HTTP status.
	Status int
	// Code and Message are the registry's own words, such as MANIFEST_UNKNOWN;
	// "" if it gave none. They are bounded and hold no credential that was sent.
	Code, Message string
	// Host gave the answer, where it is not the registry: a token service, a store
	// of blobs to which the registry led.
	Host string
	// RetryAfter is how long it asks to be left alone; 0 if it did not say.
	RetryAfter time.Duration
}

// Error shows the status and the registry's words.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s: HTTP status %d %s", e.Subject, e.Status, http.StatusText(e.Status))
	if e.Host != "" {
		text += " from " + e.Host
	}
	for _, part := range []string{e.Code, e.Message} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// Temporary says that the same question may well be answered later.
func (e *StatusError) Temporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout || e.Status >= 500
}

// ExitCode is the published code for a machine that is not let in; 0 where the
// registry answers, but has not what was asked for.
func (e *StatusError) ExitCode() int {
	switch {
	case e.Registry == MetadataService && e.Temporary():
		return exitcode.RegistryIdentity
	case e.Registry == MetadataService, e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return exitcode.RegistryUnauthorized
	}
	return 0
}

// RequestError is a question to which no answer came, or only part of one.
type RequestError struct {
	Subject
	Err error
}

// Error says what was asked and what went wrong.
func (e *RequestError) Error() string { return fmt.Sprintf("%s: %v", e.Subject, e.Err) }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// ExitCode is the published code for what began it.
func (e *RequestError) ExitCode() int {
	refused, mute := Cause(e)
	_, unverified := errors.AsType[*UnverifiedError](e.Err)
	switch {
	case unverified:
		return exitcode.Digest
	case refused != nil:
		return refused.ExitCode()
	case mute.Registry == MetadataService:
		return exitcode.RegistryIdentity
	}
	return exitcode.RegistryConnect
}

// UnverifiedError is a question that is not put: anybody could answer it.
type UnverifiedError struct{ Reason string }

// Error says why.
func (e *UnverifiedError) Error() string {
	return e.Reason + ", and nothing is known to compare the answer with"
}

// ExitCode is the code for content that must not be used.
func (*UnverifiedError) ExitCode() int { return exitcode.Digest }

// Hint says what would do.
func (*UnverifiedError) Hint() string {
	return "Name it by its digest (…@sha256:…), or have the registry prove who it is: https, and its CA in containerd's certs.d."
}

// Cause is what began an error: where a registry lets nobody in without a
// credential and none could be had, what the metadata service or the exchange
// did. It is an answer that came (refused) or did not (mute); both are nil where
// the error has neither.
func Cause(err error) (refused *StatusError, mute *RequestError) {
	if e, ok := errors.AsType[*RequestError](err); ok {
		if refused, mute = Cause(e.Err); refused == nil && mute == nil {
			mute = e
		}
		return refused, mute
	}
	refused, _ = errors.AsType[*StatusError](err)
	return refused, nil
}
