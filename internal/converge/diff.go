package converge

import (
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/berth-dev/berth/internal/desired"
)

// maxDiff bounds the text that is compared line by line, in bytes.
const maxDiff = 256 << 10

// unified is the diff from what is there to what is wanted. Where the wanted
// content is secret, or either is no text, only a line for each side shows.
func unified(path string, have []byte, exists bool, want desired.Content) string {
	if want.IsSecret() {
		return sides(path, exists, desired.Redact(have), want.String())
	}
	if !plainText(have) || !plainText(want.Data()) {
		return sides(path, exists, desired.Bytes(have).String(), want.String())
	}
	from := path
	if !exists {
		from = "/dev/null"
	}
	return udiff.Unified(from, path, string(have), string(want.Data()))
}

func sides(path string, exists bool, have, want string) string {
	if !exists {
		return "--- /dev/null\n+++ " + path + "\n+" + want + "\n"
	}
	return "--- " + path + "\n+++ " + path + "\n-" + have + "\n+" + want + "\n"
}

func plainText(b []byte) bool { return len(b) <= maxDiff && utf8.Valid(b) }
