package apiserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
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

// runEntries is how many entries of a unit are looked through for those of one run:
// what kubelet says at its next start is among them.
const runEntries = 1000

// maxJournal is how much of journalctl's answer is kept, in bytes: of runEntries in JSON each
// takes about 400, of which its cursor and its times are 250.
const maxJournal = 1 << 20

// lag is how far an entry may be from those of its run.
const lag = 10 * time.Second

// saidIn is what a unit and systemd said of a run. Once a unit has failed, systemd
// tells the journal no more of the run, so that an entry that the journal takes late,
// on a busy machine, has the unit's name alone, and may stand before systemd's own:
// one that is near counts as the run's. So does one that the journal takes so late that
// the next run has begun, whose it says it is: its process is not the one that runs, and
// systemd has said nothing of that run before.
func saidIn(ctx context.Context, h host.Runner, unit, run string) string {
	out := readJournal(ctx, h, runEntries, "json", "--output-fields=MESSAGE,INVOCATION_ID,_SYSTEMD_INVOCATION_ID,_PID", "-u", unit)
	var all []entry
	for line := range bytes.Lines(out) {
		all = append(all, parseEntry(line))
	}
	first := slices.IndexFunc(all, func(e entry) bool { return e.run == run })
	if first < 0 {
		return ""
	}
	since, running := all[first].at-lag, mainPID(ctx, h, unit)
	isLate := func(e entry) bool {
		known := func(before entry) bool { return before.pid == "1" && before.run == e.run }
		next := running != "" && e.pid != running && e.pid != "1" && !slices.ContainsFunc(all[:first], known)
		return (e.run == "" || next) && e.message != "" && e.at >= since
	}
	var said []string
	for _, e := range all {
		if e.run == run || isLate(e) {
			said = append(said, e.message)
		}
	}
	return strings.Join(said, "\n")
}

// mainPID is the process that a unit's service has now, "0" for none; "" where systemd does
// not say.
func mainPID(ctx context.Context, h host.Runner, unit string) string {
	out, err := h.Run(ctx, host.Command{Path: "systemctl", Args: []string{"show", "--property=MainPID", "--value", unit}})
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out.Stdout))
}

// entry is what the journal has of one message; run is "" where it doesn't say, pid of
// who said it, and at the time since the boot.
type entry struct {
	message, run string
	at           time.Duration
	pid          string
}

// parseEntry reads an entry as journalctl -o json prints it: a message that is no
// UTF-8 is a list of bytes, one that is too long null.
func parseEntry(line []byte) entry {
	var e struct {
		Message json.RawMessage `json:"MESSAGE"`
		Of      string          `json:"INVOCATION_ID"`
		By      string          `json:"_SYSTEMD_INVOCATION_ID"`
		PID     string          `json:"_PID"`
		At      int64           `json:"__MONOTONIC_TIMESTAMP,string"` // microseconds
	}
	if json.Unmarshal(line, &e) != nil {
		return entry{}
	}
	got := entry{run: cmp.Or(e.Of, e.By), pid: e.PID, at: time.Duration(e.At) * time.Microsecond}
	if json.Unmarshal(e.Message, &got.message) == nil {
		return got
	}
	var octets []uint16
	if json.Unmarshal(e.Message, &octets) == nil {
		b := make([]byte, len(octets))
		for i, o := range octets {
			b[i] = byte(o)
		}
		got.message = strings.ToValidUTF8(string(b), "?")
	}
	return got
}

// readJournal reads the last n entries of this boot that match; nothing where
// there is no journal.
func readJournal(ctx context.Context, h host.Runner, n int, format string, match ...string) []byte {
	args := append([]string{"-b", "-q", "--no-pager", "-n", strconv.Itoa(n), "-o", format}, match...)
	out, err := h.Run(ctx, host.Command{Path: "journalctl", Args: args, Keep: maxJournal})
	if err != nil {
		return nil
	}
	return bytes.ToValidUTF8(out.Stdout, []byte("?"))
}
