package kind

import (
	"fmt"
	"strings"
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
		return added(path, string(want.Data()))
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

// added is the diff to a text from nothing: there is nothing to compare.
func added(path, text string) string {
	if text == "" {
		return ""
	}
	lines := strings.Count(text, "\n")
	missing := !strings.HasSuffix(text, "\n")
	if missing {
		lines++
	}
	var b strings.Builder
	b.Grow(len(text) + lines + len(path) + 80)
	fmt.Fprintf(&b, "--- /dev/null\n+++ %s\n@@ -0,0 +1", path)
	if lines > 1 {
		fmt.Fprintf(&b, ",%d", lines)
	}
	b.WriteString(" @@\n")
	for line := range strings.Lines(text) {
		b.WriteByte('+')
		b.WriteString(line)
	}
	if missing {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	return b.String()
}

func sides(from, to, have, want string) string {
	return "--- " + from + "\n+++ " + to + "\n" + have + want + "\n"
}

func plainText(b []byte) bool { return len(b) <= maxDiff && utf8.Valid(b) }
