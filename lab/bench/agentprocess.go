package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab"
)

const agentUnit = "gardener-node-agent.service"

// usage is what the agent's process holds and has used.
type usage struct {
	// RSS, Anon and Peak are in KiB: resident, of it not of files, and the most ever.
	RSS, Anon, Peak int64
	// Written is in bytes, of all that went to disks.
	Written int64
	CPU     time.Duration
	PID     string
}

// usageScript prints the process's status, its I/O, and the time that each of its
// threads has run, in nanoseconds.
const usageScript = `p=$(systemctl show -P MainPID ` + agentUnit + `); echo "pid: $p"; cat /proc/$p/status /proc/$p/io; awk '{t+=$1} END {print "cpu: " t}' /proc/$p/task/*/schedstat`

func usageOf(ctx context.Context, n *lab.Node) (usage, error) {
	text, err := n.Output(ctx, "sh", "-ec", usageScript)
	if err != nil {
		return usage{}, err
	}
	return readUsage(text)
}

func readUsage(text string) (usage, error) {
	u := usage{}
	var cpu float64
	numbers := map[string]*int64{"VmRSS": &u.RSS, "RssAnon": &u.Anon, "VmHWM": &u.Peak, "write_bytes": &u.Written}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		var err error
		switch at := numbers[name]; {
		case at != nil:
			*at, err = strconv.ParseInt(fields[0], 10, 64)
			delete(numbers, name)
		case name == "cpu":
			cpu, err = strconv.ParseFloat(fields[0], 64)
		case name == "pid":
			u.PID = fields[0]
		}
		if err != nil {
			return u, fmt.Errorf("read usage of the agent: %w", err)
		}
	}
	if len(numbers) > 0 || cpu == 0 {
		return u, fmt.Errorf("usage of the agent is not complete: %q", text)
	}
	u.CPU = time.Duration(cpu)
	return u, nil
}

// logged is a line of the agent's log.
type logged struct {
	Time     time.Time
	Msg      string
	Checksum string
	// Took is a Go duration.
	Took string
}

// logOf is what the agent logged since a time.
func logOf(ctx context.Context, n *lab.Node, since time.Time) ([]logged, error) {
	text, err := n.Output(ctx, "journalctl", "--no-pager", "-q", "-u", agentUnit, "-o", "cat", "--since", fmt.Sprintf("@%d", since.Unix()))
	if err != nil {
		return nil, err
	}
	var all []logged
	for line := range strings.Lines(text) {
		var l logged
		if json.Unmarshal([]byte(line), &l) == nil && !l.Time.Before(since) { // systemd's own lines are no JSON
			all = append(all, l)
		}
	}
	return all, nil
}

// waitLogged waits until the agent has logged as many lines as ok accepts.
func waitLogged(ctx context.Context, n *lab.Node, since time.Time, want int, ok func(logged) bool) ([]logged, error) {
	for {
		all, err := logOf(ctx, n, since)
		if err != nil {
			return nil, err
		}
		var found []logged
		for _, l := range all {
			if ok(l) {
				found = append(found, l)
			}
		}
		if len(found) >= want {
			return found, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("the agent logged %d of %d lines: %w", len(found), want, ctx.Err())
		}
	}
}
