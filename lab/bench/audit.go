package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// request is one that agents made, as the API server logs it.
type request struct {
	Stage, Verb string
	AuditID     string
	User        struct{ Username string }
	ObjectRef   struct{ Resource, Subresource string }
	Received    time.Time `json:"requestReceivedTimestamp"`
}

func (r request) what() string {
	return strings.TrimSuffix(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

func (r request) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb)
}

// readAudit reads all requests that were logged until now. The last line may be
// written right now.
func readAudit(path string) ([]request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read what agents asked for: %w", err)
	}
	defer f.Close()
	var all []request
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return all, nil //nolint:nilerr // the end of the file
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read what agents asked for: %w", err)
		}
		all = append(all, r)
	}
}

// traffic is what agents asked for in a time.
type traffic struct {
	Window time.Duration
	// Counts are by verb and resource; Writes those that write. Watches that began.
	Counts                    map[string]int
	Requests, Writes, Watches int
}

func trafficOf(all []request, from, until time.Time) traffic {
	t := traffic{Window: until.Sub(from), Counts: map[string]int{}}
	for _, r := range all {
		first := r.Stage == "ResponseStarted" || r.Stage == "ResponseComplete" && r.Verb != "watch"
		if !first || r.Received.Before(from) || !r.Received.Before(until) {
			continue
		}
		t.Requests++
		t.Counts[r.what()]++
		if r.writes() {
			t.Writes++
		}
		if r.Verb == "watch" {
			t.Watches++
		}
	}
	return t
}

// openWatches counts those that began and have not ended.
func openWatches(all []request) int {
	open := map[string]bool{}
	for _, r := range all {
		if r.Verb == "watch" && r.Stage == "ResponseStarted" {
			open[r.AuditID] = true
		}
	}
	for _, r := range all {
		if r.Stage == "ResponseComplete" || r.Stage == "Panic" {
			delete(open, r.AuditID)
		}
	}
	return len(open)
}

func (t traffic) perMinute(n int) float64 { return float64(n) / t.Window.Minutes() }

func (t traffic) String() string {
	var parts []string
	for what, n := range t.Counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
