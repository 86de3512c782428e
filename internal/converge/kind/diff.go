package kind

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/berth-dev/berth/internal/desired"
)

// maxDiff bounds the text that is compared line by line, in bytes.
const maxDiff = 256 << 10

// Unified is the diff from what is there, nil for nothing, to what is wanted; ""
// where the content is equal. A side that is secret or no text shows as one line, and
// beside a secret that is wanted so does the other side.
func Unified(path string, have *desired.Content, want desired.Content) string {
	switch {
	case have == nil && isText(want):
		return added(path, string(want.Data()))
	case have == nil:
		return sides("/dev/null", path, "", side('+', want))
	case have.Sum() == want.Sum():
		return ""
	case want.IsSecret():
		return sides(path, path, side('-', desired.SecretBytes(have.Data())), side('+', want))
	case !isText(*have) || !isText(want):
		return sides(path, path, side('-', *have), side('+', want))
	}
	return udiff.Unified(path, path, string(have.Data()), string(want.Data()))
}

// added is the diff to a text from nothing: there is nothing to compare.
func added(path, text string) string {
	if text == "" {
		return ""
	}
	lines := strings.Count(text, "\n")
	if !strings.HasSuffix(text, "\n") {
		lines++
	}
	hunk := "@@ -0,0 +1"
	if lines > 1 {
		hunk += fmt.Sprintf(",%d", lines)
	}
	return sides("/dev/null", path, hunk+" @@\n", marked('+', text))
}

func sides(from, to, have, want string) string {
	return "--- " + from + "\n+++ " + to + "\n" + have + want
}

// side is one side of a diff as a whole.
func side(mark byte, c desired.Content) string {
	if !isText(c) {
		return string(mark) + c.Brief() + "\n"
	}
	return marked(mark, string(c.Data()))
}

// marked is a text with a mark before each line.
func marked(mark byte, text string) string {
	var b strings.Builder
	b.Grow(len(text) + strings.Count(text, "\n") + 1 + len(noNewline))
	for line := range strings.Lines(text) {
		b.WriteByte(mark)
		b.WriteString(line)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteString(noNewline)
	}
	return b.String()
}

const noNewline = "\n\\ No newline at end of file\n"

// isText says whether content may be shown line by line: a terminal obeys control
// characters, and the content may be anybody's.
func isText(c desired.Content) bool {
	b := c.Data()
	return !c.IsSecret() && len(b) <= maxDiff && utf8.Valid(b) && bytes.IndexFunc(b, isCommand) < 0
}

func isCommand(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' }
