package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// processExit is the MESSAGE_ID of "Main process exited", SD_MESSAGE_UNIT_PROCESS_EXIT
// in sd-messages.h.
const processExit = "98e322203f7a4ed290d09fe03c09fe15"

// syncBudget bounds the wait for entries that are on their way: a journal that is
// busy for longer has told enough already.
const syncBudget = 5 * time.Second

// syncJournal waits for what processes have said before now. The journal may lag
// behind one that has just ended.
func syncJournal(ctx context.Context, h host.Runner) {
	ctx, cancel := context.WithTimeout(ctx, syncBudget)
	defer cancel()
	_, _ = h.Run(ctx, host.Command{Path: "journalctl", Args: []string{"--sync"}}) // without it, what is there
}

// endedRun is the run of a unit whose process ended last in this boot, as
// systemd's invocation id; "" if none has.
func endedRun(ctx context.Context, h host.Runner, unit string) string {
	out := readJournal(ctx, h, 1, "json", "--output-fields=INVOCATION_ID", "-u", unit, "MESSAGE_ID="+processExit)
	return parseInvocation(out)
}

// parseInvocation reads an entry as journalctl -o json prints it.
func parseInvocation(entry []byte) string {
	var e struct {
		Run string `json:"INVOCATION_ID"`
	}
	if json.Unmarshal(entry, &e) != nil {
		return ""
	}
	return e.Run
}

// readJournal reads the last n entries of this boot that match; nothing where
// there is no journal.
func readJournal(ctx context.Context, h host.Runner, n int, format string, match ...string) []byte {
	args := append([]string{"-b", "-q", "--no-pager", "-n", strconv.Itoa(n), "-o", format}, match...)
	out, err := h.Run(ctx, host.Command{Path: "journalctl", Args: args})
	if err != nil {
		return nil
	}
	return bytes.ToValidUTF8(out.Stdout, []byte("?"))
}
