package report

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/berth-dev/berth/internal/host"
)

// Log is what a run says about itself: JSON lines in a file, and the last of
// them as text in memory, for the Output of the result.
type Log struct {
	*slog.Logger
	tail *tail
	file io.Closer
}

// OpenLog opens the log file and the links to it. A file that can't be opened
// (disk full, read-only) costs the file, not the run: err says why, and the log
// works without it.
func OpenLog(h host.Host, path string) (l *Log, err error) {
	l = &Log{tail: &tail{}}
	handlers := []slog.Handler{&textHandler{w: l.tail}}
	f, err := openAppend(h, path)
	if f != nil {
		l.file = f
		handlers = append(handlers, slog.NewJSONHandler(f, nil))
	}
	l.Logger = slog.New(slog.NewMultiHandler(handlers...))
	return l, err
}

// Tail returns the last lines, at most 3,000 bytes of whole lines.
func (l *Log) Tail() string {
	if l.tail == nil { // nothing was opened
		return ""
	}
	return l.tail.String()
}

// Close closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// tail keeps the last lines that were written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 3000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailSize {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := string(t.buf)
	if len(s) <= tailSize {
		return s
	}
	return string(lastLines([]byte(s), tailSize))
}

// textHandler prints a record as one short line: time, level unless it is info,
// message, attributes. Of an action's attributes the id needs no name, the phase
// no mention, and a duration of nothing either.
type textHandler struct {
	w     io.Writer
	attrs []slog.Attr
}

func (h *textHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Time.UTC().Format("15:04:05.000 "))
	if r.Level != slog.LevelInfo {
		b.WriteString(r.Level.String() + " ")
	}
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		b.WriteString(short(a))
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	b.WriteByte('\n')
	_, err := io.WriteString(h.w, b.String())
	return err
}

func short(a slog.Attr) string {
	text := strings.ReplaceAll(a.Value.Resolve().String(), "\n", " ")
	switch {
	case a.Key == "id":
		return " " + text
	case a.Key == "phase", a.Key == "ms" && text == "0":
		return ""
	}
	return " " + a.Key + "=" + text
}

func (h *textHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return &textHandler{h.w, append(append([]slog.Attr(nil), h.attrs...), as...)}
}

// WithGroup drops the group's name: the short form has no place for it.
func (h *textHandler) WithGroup(string) slog.Handler { return h }
