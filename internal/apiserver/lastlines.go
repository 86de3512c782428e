package apiserver

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// maxLines is how many lines of a journal go into a message.
const maxLines = 20

// tail is what kubelet said last.
func (v *vigil) tail(ctx context.Context) string {
	return shown(readJournal(ctx, v.Host, v.Unit))
}

// lastWords is what kubelet said before it ended.
func (v *vigil) lastWords(ctx context.Context) string { return LastWords(ctx, v.Host, v.Unit) }

// LastWords is what a unit said before its process ended last, secrets redacted,
// for the end of an error message: each line behind a line break and two spaces.
// What a start since then says is left out; where no process has ended, it is
// what was said last. It is empty if the journal can't be read.
func LastWords(ctx context.Context, h host.Runner, unit string) string {
	entries := readJournal(ctx, h, unit)
	var ended string
	for _, e := range entries {
		if e.ID == processExit {
			ended = e.invocation()
		}
	}
	if ended == "" {
		return shown(entries)
	}
	// Not by order: systemd's own words overtake those of the process.
	var its []journalEntry
	for _, e := range entries {
		if e.invocation() == ended {
			its = append(its, e)
		}
	}
	return shown(its)
}

// shown is the end of what entries say.
func shown(entries []journalEntry) string {
	var lines []string
	for _, e := range entries[max(0, len(entries)-maxLines):] {
		lines = append(lines, string(e.Message))
	}
	text := ending(strings.TrimSpace(strings.Join(lines, "\n")))
	if text == "" {
		return ""
	}
	return "; its last lines:\n  " + strings.ReplaceAll(redact(text), "\n", "\n  ")
}

// invocation is the run of the unit that an entry is of, or about.
func (e journalEntry) invocation() string { return cmp.Or(e.About, e.Of) }

// secrets are bootstrap tokens, bearer tokens, tokens in JWT form and keys.
var secrets = regexp.MustCompile(`(?s)\b[a-z0-9]{6}\.[a-z0-9]{16}\b` +
	`|(?i:bearer )[A-Za-z0-9._~+/=-]+` +
	`|\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9._-]+` +
	`|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)

// redact replaces what looks like a secret.
func redact(text string) string {
	return secrets.ReplaceAllStringFunc(text, func(s string) string { return desired.Redact([]byte(s)) })
}

// maxEnding is how much of a journal goes into a message, in bytes: the last line
// must still be there when the message is cut to fit a result.
const maxEnding = 1500

// ending drops lines from the beginning of a text that is too long, and the end
// of a line that alone is.
func ending(text string) string {
	for len(text) > maxEnding {
		_, rest, more := strings.Cut(text, "\n")
		if !more {
			return strings.ToValidUTF8(text[:maxEnding], "") + "…"
		}
		text = rest
	}
	return text
}
