package provision

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// events are task, level and message of what the guest agent would find.
func events(t *testing.T, h host.FS) []string {
	t.Helper()
	names, err := h.ReadDir(report.EventsDir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, n := range names {
		b, err := h.ReadFile(report.EventsDir + "/" + n)
		if err != nil {
			t.Fatal(err)
		}
		var e report.Event
		if err := json.Unmarshal(b, &e); err != nil {
			t.Errorf("%s: %v", n, err)
		}
		message, _, _ := strings.Cut(e.Message, " | startTime=")
		out = append(out, strings.TrimPrefix(e.TaskName, "AKS.AKSNodeController.")+" "+e.EventLevel+" "+message)
	}
	return out
}
