package apiserver

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// logBudget bounds the look at a unit's log. A journal that is busy leaves half of it.
const logBudget = 2 * syncBudget

// forLog is a context for the look at a unit's log: it goes on where ctx has ended.
func forLog(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), logBudget)
}

// maxLines is how many entries of a journal go into a message.
const maxLines = 20

// tail is what kubelet said last.
func (w *nodeWait) tail(ctx context.Context) string {
	ctx, cancel := forLog(ctx)
	defer cancel()
	syncJournal(ctx, w.Host)
	return logLines(ctx, w.Host, "-u", w.Unit)
}

// lastLogLines is what kubelet said before it ended.
func (w *nodeWait) lastLogLines(ctx context.Context) string { return LastLogLines(ctx, w.Host, w.Unit) }

// LastLogLines is what a unit and systemd said of the run whose process ended last,
// secrets redacted, for the end of an error message: each line behind a line
// break and two spaces. What a start since then says is left out: kubelet begins
// each run with two hundred lines of flags. Where no process has ended, it is
// what was said last. It is empty if the journal can't be read within logBudget; that ctx
// has ended counts for nothing.
func LastLogLines(ctx context.Context, h host.Runner, unit string) string {
	ctx, cancel := forLog(ctx)
	defer cancel()
	syncJournal(ctx, h)
	if run := endedRun(ctx, h, unit); run != "" {
		if said := saidIn(ctx, h, unit, run); said != "" {
			return asLastLines(said)
		}
		return logLines(ctx, h, "_SYSTEMD_INVOCATION_ID="+run, "+", "_PID=1", "INVOCATION_ID="+run)
	}
	return logLines(ctx, h, "-u", unit)
}

// logLines is the end of what the entries say that match.
func logLines(ctx context.Context, h host.Runner, match ...string) string {
	return asLastLines(string(readJournal(ctx, h, 2*maxLines, "cat", match...)))
}

// asLastLines is the end of a log as the end of an error message.
func asLastLines(log string) string {
	text := ending(telling(strings.TrimSpace(plain(log))))
	if text == "" {
		return ""
	}
	return "; its last lines:\n  " + strings.ReplaceAll(redact(text), "\n", "\n  ")
}

// colours are what a program writes for a terminal (ECMA-48, control sequences).
var colours = lazyregexp.New("\x1b\\[[0-9;?]*[@-~]")

// plain leaves colours and control characters out: the message goes to terminals, and into
// results in which they stand for nothing.
func plain(log string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			return -1
		}
		return r
	}, colours().ReplaceAllString(log, ""))
}

// asides are lines that come at each start, many of them, and never say why it ended: warnings of
// what is deprecated, in words of kubelet (of a flag, in its help, in its log) and of containerd,
// and the value of each flag.
var asides = lazyregexp.New(`^(?:Flag --\S|\s+(?:-\w, )?--\S|[IW]\d{4} |time=\S+ level=(?:info|warning) ).*(?i:\bdeprecated\b)|\] FLAG: --`)

// telling are the last lines of a text without those that never tell why.
func telling(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), asides().MatchString)
	return strings.Join(lines[max(0, len(lines)-maxLines):], "\n")
}

// secrets are bootstrap tokens, bearer tokens, tokens in JWT form and keys.
var secrets = lazyregexp.New(`(?s)\b[a-z0-9]{6}\.[a-z0-9]{16}\b` +
	`|(?i:bearer )[A-Za-z0-9._~+/=-]+` +
	`|\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9._-]+` +
	`|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)

// redact replaces what looks like a secret.
func redact(text string) string {
	return secrets().ReplaceAllStringFunc(text, func(s string) string { return desired.Redact([]byte(s)) })
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
