package apiserver

import (
	"context"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// tail is what kubelet said last.
func (v *vigil) tail(ctx context.Context) string { return LastLines(ctx, v.Host, v.Unit) }

// LastLines is what a unit said last, secrets redacted, for the end of an error
// message: each line behind a line break and two spaces. It is empty if the
// journal can't be read.
func LastLines(ctx context.Context, h host.Runner, unit string) string {
	out, err := h.Run(ctx, host.Command{Path: "journalctl", Args: []string{"-u", unit, "-n", "20", "-o", "cat", "--no-pager"}})
	if err != nil {
		return ""
	}
	text := ending(strings.TrimSpace(string(out.Stdout)))
	if text == "" || strings.HasPrefix(text, "-- No entries") {
		return ""
	}
	return "; its last lines:\n  " + strings.ReplaceAll(redact(text), "\n", "\n  ")
}

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
