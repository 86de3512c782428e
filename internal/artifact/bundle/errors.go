package bundle

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/exitcode"
)

// NotBundleError is a file that is something else.
type NotBundleError struct{ Reason string }

// Error says what it is instead.
func (e *NotBundleError) Error() string { return "not a bundle of berth: " + e.Reason }

// ExitCode implements exitcode.Coded.
func (*NotBundleError) ExitCode() int { return exitcode.Digest }

// Hint says where bundles come from.
func (*NotBundleError) Hint() string {
	return "Name a file that berth bundle create wrote; it is neither compressed nor unpacked."
}

// VersionError is a bundle of another version of the format.
type VersionError struct{ Version int }

// Error shows both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the bundle has version %d of the format; this berth reads version %d", e.Version, FormatVersion)
}

// ExitCode implements exitcode.Coded.
func (*VersionError) ExitCode() int { return exitcode.Digest }

// Hint says what helps.
func (*VersionError) Hint() string {
	return "Use a berth as new as the one that made the bundle, or make it again with this one."
}

// DamagedError is a bundle whose members are not those that its manifest makes:
// cut short, repacked, with something added or taken away.
type DamagedError struct {
	// Member is the name of what is wrong or missing, as it should be.
	Member string
	// Offset is where in the file, in bytes; 0 where it is about content.
	Offset int64
	Reason string
}

// Error names the member.
func (e *DamagedError) Error() string {
	if e.Offset == 0 {
		return fmt.Sprintf("damaged bundle: %s: %s", e.Member, e.Reason)
	}
	return fmt.Sprintf("damaged bundle: %s (at byte %d): %s", e.Member, e.Offset, e.Reason)
}

// ExitCode implements exitcode.Coded.
func (*DamagedError) ExitCode() int { return exitcode.Digest }

// Hint says what helps.
func (*DamagedError) Hint() string {
	return "Copy the bundle again from where it was made and compare the sha256 of the whole file; do not repack it."
}

// UnsignedError is a bundle without a signature where one is wanted.
type UnsignedError struct{}

// Error says so.
func (*UnsignedError) Error() string { return "the bundle is not signed, and trusted keys are set" }

// ExitCode implements exitcode.Coded.
func (*UnsignedError) ExitCode() int { return exitcode.Digest }

// Hint says how it would be signed.
func (*UnsignedError) Hint() string {
	return "Make it with berth bundle create --key FILE, with the private key of one that this machine trusts."
}

// UntrustedError is a bundle that another key signed.
type UntrustedError struct {
	// KeyID is the signer's, Trusted are those that count.
	KeyID   string
	Trusted []string
}

// Error names the keys.
func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the bundle is signed by key %s, which is not trusted; trusted: %s", e.KeyID, strings.Join(e.Trusted, ", "))
}

// ExitCode implements exitcode.Coded.
func (*UntrustedError) ExitCode() int { return exitcode.Digest }

// Hint says how a key becomes trusted.
func (*UntrustedError) Hint() string {
	return "If you know the signer, put the public key into " + KeyDir + "/*.pem or name it with --key."
}

// SignatureError is a manifest that is not the one that was signed.
type SignatureError struct{ KeyID string }

// Error names the key.
func (e *SignatureError) Error() string {
	return fmt.Sprintf("the manifest of the bundle was altered after key %s signed it", e.KeyID)
}

// ExitCode implements exitcode.Coded.
func (*SignatureError) ExitCode() int { return exitcode.Digest }

// Hint says what helps.
func (*SignatureError) Hint() string {
	return "Do not use the bundle; get it again from whoever made it."
}

// BlobError is content that is missing or altered.
type BlobError struct {
	// Digest is what it should have, Got what it has; "" if it is missing.
	Digest, Got string
	// Of is what it belongs to: artifacts and images.
	Of []string
}

// Error names the blob and what it belongs to.
func (e *BlobError) Error() string {
	text := "blob " + e.Digest
	if len(e.Of) > 0 {
		text += " (" + strings.Join(e.Of, ", ") + ")"
	}
	if e.Got == "" {
		return text + " is not in the bundle"
	}
	return text + " was altered: its content has sha256:" + e.Got
}

// ExitCode implements exitcode.Coded.
func (*BlobError) ExitCode() int { return exitcode.Digest }

// Hint says what helps.
func (e *BlobError) Hint() string {
	if e.Got == "" {
		return "Make the bundle again with what is missing, or name the bundle that holds it."
	}
	return "Copy the bundle again from where it was made; if that one is altered too, make it again."
}

// ImageError is an image that is not whole or not for the bundle's platform.
type ImageError struct {
	Reference string
	Err       error
}

// Error names the image.
func (e *ImageError) Error() string {
	return fmt.Sprintf("image %s: %v", e.Reference, e.Err)
}

// Unwrap returns the cause.
func (e *ImageError) Unwrap() error { return e.Err }

// ExitCode implements exitcode.Coded.
func (*ImageError) ExitCode() int { return exitcode.Digest }

// Hint says what helps.
func (*ImageError) Hint() string {
	return "Name an image for the bundle's platform (--platform), whole: with its configuration and all layers."
}

// StrayError is a blob that nothing in the manifest refers to.
type StrayError struct{ Digest string }

// Error names the blob.
func (e *StrayError) Error() string {
	return fmt.Sprintf("blob %s belongs to no artifact and no image", e.Digest)
}

// ExitCode implements exitcode.Coded.
func (*StrayError) ExitCode() int { return exitcode.Digest }

// Hint says what helps.
func (*StrayError) Hint() string {
	return "Do not use the bundle: berth bundle create writes no such thing."
}

// ContentError is a source whose content is not what was promised.
type ContentError struct {
	// What is the artifact or image, Source says who promised Want.
	What, Want, Got, Source string
}

// Error shows both digests.
func (e *ContentError) Error() string {
	return fmt.Sprintf("%s: sha256 is %s, want %s (from %s)", e.What, e.Got, e.Want, e.Source)
}

// ExitCode implements exitcode.Coded.
func (*ContentError) ExitCode() int { return exitcode.Digest }

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
