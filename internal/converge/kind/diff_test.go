package kind

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

// TestEverySideIsMarked: each line of a diff says which side it is of, whatever the
// other side holds; what is no text for a terminal, or too long, is one line.
func TestEverySideIsMarked(t *testing.T) {
	const head = "--- /x\n+++ /x\n"
	binary, long := desired.Text("\xff\x00"), desired.Text(strings.Repeat("line\n", maxDiff))
	summary := func(c desired.Content) string { return c.Brief() + "\n" }
	for name, c := range map[string]struct {
		have, want desired.Content
		diff       string
	}{
		"text for binary":   {binary, desired.Text("a\nb\n"), head + "-" + summary(binary) + "+a\n+b\n"},
		"binary for text":   {desired.Text("a\nb"), binary, head + "-a\n-b\n\\ No newline at end of file\n+" + summary(binary)},
		"binary for binary": {binary, desired.Text("\xfe"), head + "-" + summary(binary) + "+" + summary(desired.Text("\xfe"))},
		"text for long":     {long, desired.Text("a\n"), head + "-" + summary(long) + "+a\n"},
		"long for text":     {desired.Text("a\n"), long, head + "-a\n+" + summary(long)},
		"text for a secret": {desired.SecretBytes([]byte("s")), desired.Text("a\nb\n"), head + "-" + desired.Redact([]byte("s")) + "\n+a\n+b\n"},
		"a terminal's word": {desired.Text("\x1b[2J\n"), desired.Text("a\n"), head + "-" + summary(desired.Text("\x1b[2J\n")) + "+a\n"},
		"a tab, a return":   {desired.Text("\ta\r\n"), desired.Text("a\n"), head + "@@ -1 +1 @@\n-\ta\r\n+a\n"},
	} {
		if d := cmp.Diff(c.diff, Unified("/x", &c.have, c.want)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if d := cmp.Diff("--- /dev/null\n+++ /x\n+"+summary(binary), Unified("/x", nil, binary)); d != "" {
		t.Errorf("from nothing (-want +got):\n%s", d)
	}
}
