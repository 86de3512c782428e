package apiserver

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/berth-dev/berth/internal/host"
)

// journalEntry is an entry of the journal, as journalctl -o json prints it.
type journalEntry struct {
	Message journalText `json:"MESSAGE"`
	// ID is the kind of a message of systemd's own.
	ID string `json:"MESSAGE_ID"`
	// Of is the run of the unit whose process wrote the entry; About is the one
	// that systemd's own message is about.
	Of    string `json:"_SYSTEMD_INVOCATION_ID"`
	About string `json:"INVOCATION_ID"`
}

// processExit is the MESSAGE_ID of "Main process exited", SD_MESSAGE_UNIT_PROCESS_EXIT
// in sd-messages.h.
const processExit = "98e322203f7a4ed290d09fe03c09fe15"

// journalText is a field of an entry: a string, or bytes as an array of numbers
// where it is not all printable.
type journalText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *journalText) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*t = journalText(text)
		return nil
	}
	var numbers []int
	if json.Unmarshal(data, &numbers) != nil {
		return nil // null, or a field given twice: not to be shown
	}
	raw := make([]byte, len(numbers))
	for i, n := range numbers {
		raw[i] = byte(n)
	}
	*t = journalText(bytes.ToValidUTF8(raw, []byte("?")))
	return nil
}

// readJournal reads the end of what a unit and systemd said of it: enough that
// kubelet, which begins each run with two hundred lines of flags, has said before
// them why the last one ended.
func readJournal(ctx context.Context, h host.Runner, unit string) []journalEntry {
	// The journal may lag behind a process that has just ended.
	_, _ = h.Run(ctx, host.Command{Path: "journalctl", Args: []string{"--sync"}}) // without it, what is there
	out, err := h.Run(ctx, host.Command{Path: "journalctl", Args: []string{
		"-u", unit, "-n", "600", "--no-pager", "-o", "json", "--output-fields=MESSAGE,MESSAGE_ID,INVOCATION_ID,_SYSTEMD_INVOCATION_ID",
	}})
	if err != nil {
		return nil
	}
	return parseJournal(out.Stdout)
}

// parseJournal leaves out what is no entry.
func parseJournal(data []byte) []journalEntry {
	var entries []journalEntry
	for line := range bytes.Lines(data) {
		var e journalEntry
		if json.Unmarshal(line, &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries
}
