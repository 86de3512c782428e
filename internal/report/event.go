package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"time"

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

const eventTime = "2006-01-02 15:04:05.000"

// NewEvent describes one task that ran from start to end.
func NewEvent(task, message string, failed bool, start, end time.Time) Event {
	level := "Informational"
	if failed {
		level = "Error"
	}
	s, e := start.Local().Format(eventTime), end.Local().Format(eventTime)
	return Event{
		Timestamp: s, OperationID: e, Version: "1.23", TaskName: "AKS.AKSNodeController." + task, EventLevel: level,
		Message:  fmt.Sprintf("%s | startTime=%s endTime=%s durationMs=%d", message, s, e, end.Sub(start).Milliseconds()),
		EventPid: "0", EventTid: "0",
	}
}

// WriteEvent puts an event where the guest agent looks. The name is the time in
// nanoseconds, counted up while it is taken, so that no event replaces another.
func WriteEvent(h host.Host, e Event) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := host.MkdirAll(h, EventsDir); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	for n := h.Now().UnixNano(); ; n++ {
		p := path.Join(EventsDir, strconv.FormatInt(n, 10)+".json")
		if _, err := h.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := host.WriteFile(h, p, b, host.Attributes{Mode: 0o644}); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
		return nil
	}
}
