package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// Event is one telemetry event for the Azure guest agent, which takes the files
// of EventsDir away. Field names and order are those that it reads.
type Event struct {
	Timestamp   string
	OperationID string `json:"OperationId"` // by convention the end time
	Version     string
	TaskName    string
	EventLevel  string
	Message     string
	EventPid    string
	EventTid    string
}

// The tasks that events are about, as published: the two of the controller, and the
// run as a whole as the scripts that it takes the place of call it.
const (
	TaskProvision     = ownTasks + "Provision"
	TaskProvisionWait = ownTasks + "ProvisionWait"
	TaskRun           = "CSE.cse_start"
)

// timesMark is between what an event says and when it was.
const timesMark = " | startTime="

const eventTime = "2006-01-02 15:04:05.000"

// maxEvents is how many files the guest agent takes in one of its periods; it
// throws the rest away (WALinuxAgent, collect_telemetry_events.py). Where none
// runs, the directory grows no further either.
const maxEvents = 300

// maxActions is how many of a run's events are about its actions at most, so that
// there is room for the run's own, and for those of others.
const maxActions = 250

// maxMessage is how much of a message the guest agent passes on, and maxSize how
// large an event may be that it passes on at all, in bytes (the same source).
const (
	maxMessage = 3 << 10
	maxSize    = 6 << 10
)

// Starting is the event of a task that starts now.
func Starting(task string, at time.Time) Event { return newEvent(task, "Starting", false, at, at) }

// Ended is the event of a task that ran from start to end. The outcome of one
// that failed is in its result.
func Ended(task string, d Result, start, end time.Time) Event {
	if d.ExitCode == strconv.Itoa(exitcode.OK) {
		return newEvent(task, "Completed", false, start, end)
	}
	name := "exit code " + d.ExitCode
	if d.Berth != nil && d.Berth.Code != "" {
		name = d.Berth.Code
	}
	return newEvent(task, name+": "+d.Error, true, start, end)
}

func newEvent(task, message string, failed bool, start, end time.Time) Event {
	level := "Informational"
	if failed {
		level = "Error"
	}
	s, e := start.Local().Format(eventTime), end.Local().Format(eventTime)
	times := fmt.Sprintf(timesMark+"%s endTime=%s durationMs=%d", s, e, end.Sub(start).Milliseconds())
	return Event{
		Timestamp: s, OperationID: e, Version: "1.23", TaskName: "AKS." + task, EventLevel: level,
		Message:  beginning(message, maxMessage-len(times)) + times,
		EventPid: "0", EventTid: "0",
	}
}

// beginning is the first part of a text, at most n bytes of whole characters.
func beginning(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// WriteEvents puts events where the guest agent looks, the first ones where there is
// not room for all. The name of each is the time in nanoseconds, counted up while it
// is taken, so that no event replaces another. A reader finds the file whole; it is
// not made durable, since nobody shall wait for the disk on its account.
func WriteEvents(h host.Host, events ...Event) error {
	if err := putEvents(h, events); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return nil
}

func putEvents(h host.Host, events []Event) error {
	if err := mkdirs(h, EventsDir); err != nil {
		return err
	}
	names, err := h.ReadDir(EventsDir)
	if err != nil {
		return err
	}
	for i, e := range events {
		if len(names) >= maxEvents {
			return fmt.Errorf("%d files in %s wait for the guest agent, and there is no room for %d more", len(names), EventsDir, len(events)-i)
		}
		name := freeEvent(names, h.Now())
		if err := putEvent(h, e, name); err != nil {
			return err
		}
		names = append(names, name)
	}
	return nil
}

func putEvent(h host.Host, e Event, name string) error {
	b, err := encodeEvent(e)
	if err != nil {
		return err
	}
	tmp := host.TempName(path.Join(EventsDir, strings.ToLower(path.Ext(e.TaskName)[1:])))
	if err := fillEvent(h, tmp, b); err != nil {
		return err
	}
	return h.Rename(tmp, path.Join(EventsDir, name))
}

// encodeEvent prints an event. The message is made shorter until the whole fits:
// some characters are six in JSON.
func encodeEvent(e Event) ([]byte, error) {
	for {
		b, err := json.Marshal(e)
		if err != nil || len(b) <= maxSize || e.Message == "" {
			return b, err
		}
		text, times, _ := cutLast(e.Message, timesMark)
		if text == "" {
			times = ""
		}
		e.Message = beginning(text, len(text)/2) + times
	}
}

// cutLast cuts a text before the last mark in it.
func cutLast(s, mark string) (before, after string, found bool) {
	i := strings.LastIndex(s, mark)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i:], true
}

// fillEvent writes the file under a name that the guest agent does not take: one
// for each task, so that what a killed process left is replaced.
func fillEvent(h host.FS, tmp string, b []byte) error {
	if err := h.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := h.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return errors.Join(err, h.Remove(tmp))
	}
	return nil
}

// freeEvent is the first name from a time on that is not among those taken.
func freeEvent(taken []string, at time.Time) string {
	for n := at.UnixNano(); ; n++ {
		name := strconv.FormatInt(n, 10) + ".json"
		if !slices.Contains(taken, name) {
			return name
		}
	}
}
