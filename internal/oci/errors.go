package oci

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/exitcode"
)

// DigestError is content other than what was promised.
type DigestError struct {
	// What is in words: "blob sha256:…".
	What string
	// Want and Got are digests, "sha256:…". Source says who promised Want.
	Want, Got, Source string
}

// Error shows both digests.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s: its digest is %s, want %s (from %s)", e.What, e.Got, e.Want, e.Source)
}

// ExitCode is the code for content that must not be used.
func (*DigestError) ExitCode() int { return exitcode.Digest }

// SizeError is a blob that is longer or shorter than promised, though it came
// whole.
type SizeError struct {
	// What is as of a DigestError.
	What      string
	Want, Got int64
}

// Error shows both sizes in bytes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: it has %d bytes, want %d (from the manifest)", e.What, e.Got, e.Want)
}

// ManifestError is a manifest or a configuration that can't be used.
type ManifestError struct {
	// What is as of a DigestError.
	What string
	Err  error
}

// Error says why.
func (e *ManifestError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }

// Unwrap returns the cause.
func (e *ManifestError) Unwrap() error { return e.Err }

func refused(d v1.Descriptor, err error) error {
	return &ManifestError{"manifest " + Words(d.Digest.String(), 100), err}
}

// PlatformError is content that is there, but not for this machine.
type PlatformError struct {
	// What is as of a DigestError.
	What string
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
	return fmt.Sprintf("%s: not for %s; it is for %s", e.What, e.Want, have)
}

// IsContent says that an error of Walk is about the content itself, and not about
// how to come by it.
func IsContent(err error) bool {
	_, manifest := errors.AsType[*ManifestError](err)
	_, platform := errors.AsType[*PlatformError](err)
	_, digest := errors.AsType[*DigestError](err)
	_, size := errors.AsType[*SizeError](err)
	return manifest || platform || digest || size
}

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

// Words makes the text of others fit to be shown: one line, bounded in its runes.
func Words(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if r := []rune(text); len(r) > limit {
		text = string(r[:limit]) + "…"
	}
	return strings.TrimSpace(text)
}
