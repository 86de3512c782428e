package oci

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/exitcode"
)

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

// ReferenceError is a text that names nothing in a registry.
type ReferenceError struct {
	// Text is without user and query: they may be secrets.
	Text, Reason string
}

// Error says what is wrong with the text.
func (e *ReferenceError) Error() string { return fmt.Sprintf("%q: %s", e.Text, e.Reason) }

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
	switch {
	case refused != nil:
		return refused.ExitCode()
	case mute.Registry == MetadataService:
		return exitcode.RegistryIdentity
	}
	return exitcode.RegistryConnect
}

// DigestError is content other than what was promised.
type DigestError struct {
	Subject
	// Want and Got are digests, "sha256:…". Source says who promised Want.
	Want, Got, Source string
}

// Error shows both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s: its digest is %s, want %s (from %s)", e.Subject, e.Got, e.Want, e.Source)
}

// ExitCode is the code for content that must not be used.
func (*DigestError) ExitCode() int { return exitcode.Digest }

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

// SizeError is a blob that is longer or shorter than promised by an answer that
// is complete in itself.
type SizeError struct {
	Subject
	Want, Got int64
}

// Error shows both sizes in bytes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: it has %d bytes, want %d (from the manifest)", e.Subject, e.Got, e.Want)
}

// PlatformError is content that is there, but not for this machine.
type PlatformError struct {
	Subject
	// Want and Have are as in linux/arm64 and linux/arm/v7.
	Want string
	Have []string
}

// Error names the platforms that are there.
func (e *PlatformError) Error() string {
	have := "none"
	if len(e.Have) > 0 {
		have = strings.Join(e.Have, ", ")
	}
	return fmt.Sprintf("%s: not for %s; it is for %s", e.Subject, e.Want, have)
}

// ManifestError is a manifest that can't be used.
type ManifestError struct {
	Subject
	Reason string
}

// Error says why.
func (e *ManifestError) Error() string { return fmt.Sprintf("%s: %s", e.Subject, e.Reason) }

// MissingError is files that are wanted and not there.
type MissingError struct {
	Paths []string
	// Have are names that are there and may be meant.
	Have []string
}

// Error names what is missing and what may be meant.
func (e *MissingError) Error() string {
	text := fmt.Sprintf("no %s in it", strings.Join(e.Paths, ", "))
	if len(e.Have) > 0 {
		text += "; it holds " + strings.Join(e.Have, ", ")
	}
	return text
}

// ContentError is an image whose content is refused: it is malformed, leads out
// of itself, or is larger than it may be.
type ContentError struct {
	// Layer is the digest of the layer, Path the file in it; "" if it is about no
	// single one.
	Layer, Path string
	Err         error
}

// Error says where and why.
func (e *ContentError) Error() string {
	text := "image"
	if e.Layer != "" {
		text = "layer " + e.Layer
	}
	if e.Path != "" {
		text += fmt.Sprintf(": %q", e.Path)
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap returns the cause.
func (e *ContentError) Unwrap() error { return e.Err }
