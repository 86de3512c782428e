package kind

import (
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/berth-dev/berth/internal/desired"
)

// maxDiff bounds the text that is compared line by line, in bytes.
const maxDiff = 256 << 10

// Unified is the diff from what is there, nil for nothing, to what is wanted; ""
// where the content is equal. A
// side that is secret or no text shows as one line, and beside a secret that is
// wanted so does the other side.
func Unified(path string, have *desired.Content, want desired.Content) string {
	if have == nil {
		if want.IsSecret() || !plainText(want.Data()) {
			return sides("/dev/null", path, "", "+"+want.String())
		}
		return udiff.Unified("/dev/null", path, "", string(want.Data()))
	}
	switch {
	case have.Sum() == want.Sum():
		return ""
	case want.IsSecret():
		return sides(path, path, "-"+desired.Redact(have.Data())+"\n", "+"+want.String())
	case !plainText(have.Data()) || !plainText(want.Data()):
		return sides(path, path, "-"+have.String()+"\n", "+"+want.String())
	case have.IsSecret():
		return udiff.Unified(path, path, have.String()+"\n", string(want.Data()))
	}
	return udiff.Unified(path, path, string(have.Data()), string(want.Data()))
}

func sides(from, to, have, want string) string {
	return "--- " + from + "\n+++ " + to + "\n" + have + want + "\n"
}

func plainText(b []byte) bool { return len(b) <= maxDiff && utf8.Valid(b) }
