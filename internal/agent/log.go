package agent

import (
	"io"
	"log/slog"
)

// NewLog makes the log of the whole process, which goes to w. The levels are debug, info and
// error, the formats json and text.
func NewLog(w io.Writer, level, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: map[string]slog.Level{"debug": slog.LevelDebug, "error": slog.LevelError}[level]}
	var h slog.Handler = slog.NewJSONHandler(w, o)
	if format == "text" {
		h = slog.NewTextHandler(w, o)
	}
	log := slog.New(h)
	slog.SetDefault(log)
	return log
}
