package apiserver

import (
	"context"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// tail is what kubelet said last, each line behind a line break and two spaces;
// "" if the journal can't be read.
func (v *vigil) tail(ctx context.Context) string {
	out, err := v.Host.Run(ctx, host.Command{Path: "journalctl", Args: []string{"-u", v.Unit, "-n", "20", "-o", "cat", "--no-pager"}})
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(out.Stdout))
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
