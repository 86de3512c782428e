package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Redact is how a secret prints: a fixed word and four hex digits of its hash,
// so that a change of the secret shows.
func Redact(secret []byte) string {
	sum := sha256.Sum256(secret)
	return "REDACTED#" + hex.EncodeToString(sum[:2])
}

// Secret is a text that never prints.
type Secret string

// String redacts.
func (s Secret) String() string { return Redact([]byte(s)) }

// GoString redacts under %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalJSON redacts.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Reveal returns the text itself, for the one caller that needs it.
func (s Secret) Reveal() string { return string(s) }

// Content is what a file holds. The zero value is an empty public file.
type Content struct {
	data   []byte
	secret bool
}

// Text makes public content.
func Text(s string) Content { return Content{data: []byte(s)} }

// Bytes makes public content of a copy of b.
func Bytes(b []byte) Content { return Content{data: append([]byte(nil), b...)} }

// SecretBytes makes content that prints redacted and may only be written to a
// file that no group or other can read, unless the document names its mode.
func SecretBytes(b []byte) Content { return Content{data: append([]byte(nil), b...), secret: true} }

// Data returns the bytes; the caller must not change them.
func (c Content) Data() []byte { return c.data }

// IsSecret says whether the content may be shown.
func (c Content) IsSecret() bool { return c.secret }

// Sum is the sha256 of the bytes in hex.
func (c Content) Sum() string {
	sum := sha256.Sum256(c.data)
	return hex.EncodeToString(sum[:])
}

// String is the text, or what Brief says where there is none to show.
func (c Content) String() string {
	if c.secret || !utf8.Valid(c.data) {
		return c.Brief()
	}
	return string(c.data)
}

// Brief stands for the content in one line: size and hash, or its redaction.
func (c Content) Brief() string {
	if c.secret {
		return Redact(c.data)
	}
	return fmt.Sprintf("<%d bytes, sha256 %s>", len(c.data), c.Sum()[:12])
}

// GoString redacts under %#v.
func (c Content) GoString() string { return c.String() }

// MarshalJSON prints the text, or its redaction.
func (c Content) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }
