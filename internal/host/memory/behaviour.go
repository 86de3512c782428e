package memory

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/host"
)

// Behaviour is what a unit does when it starts. It may use the host's files (a
// daemon that writes its socket), but no jobs.
type Behaviour func(Start) Outcome

// Start is a start of a unit.
type Start struct {
	Unit string
	// Verb is start, restart, boot or auto-restart.
	Verb string
}

// Outcome is how a start goes. The zero value is success.
type Outcome struct {
	// Status is the exit status of the main process; other than 0 the unit fails.
	Status int32
	// Result is systemd's word for a failure; empty means exit-code.
	Result string
	// Hang: the unit stays activating. Its job does not end.
	Hang bool
	// Slow: the unit stays activating, and whoever started it waits. It is active
	// when somebody waits for its start again.
	Slow bool
}

// Behave sets how a unit starts. Without it every start succeeds whose programs
// exist; ExecStart lines of oneshot services whose program has a model run it.
func (h *Host) Behave(unit string, b Behaviour) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.systemd.behaviours[unit] = b
}

// Reads declares that a unit reads files when it starts: what was in them then
// stands in its jobs.
func (h *Host) Reads(unit string, paths ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.systemd.reads[unit] = append(h.systemd.reads[unit], paths...)
}

// Job is what systemd did to a unit.
type Job struct {
	Boot int
	Unit string
	// Verb is start, stop, restart, reload, boot or auto-restart.
	Verb string
	// Definition is a hash of definition and drop-ins as they were loaded.
	Definition string
	// Reads are the files that the unit reads, with what was in them; "absent"
	// for one that was not there.
	Reads map[string]string
	// InvocationID is that of the run that began; empty for stop.
	InvocationID string
	// Result is what the unit made of it: success, exit-code, timeout, …
	Result string
}

// String is a line for logs: "restart kubelet.service".
func (j Job) String() string {
	if j.Result != "" && j.Result != "success" {
		return j.Verb + " " + j.Unit + " (" + j.Result + ")"
	}
	return j.Verb + " " + j.Unit
}

// Jobs are all starts, stops, restarts and reloads that took place, in order.
// Starting what runs and stopping what does not is no job.
func (h *Host) Jobs() []Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.systemd.log)
}

// ForgetJobs empties the log.
func (h *Host) ForgetJobs() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.systemd.log = nil
}

// Units describes every unit the manager has loaded, by name.
func (h *Host) Units() map[string]host.UnitStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]host.UnitStatus{}
	for _, name := range sortedKeys(h.systemd.units) {
		out[name] = h.status(name)
	}
	return out
}

// quiet is a slice that nobody defined: it comes and goes with what is in it.
func (u *unit) quiet() bool {
	return path.Ext(u.name) == ".slice" && u.def != nil && u.def.fragment == ""
}

// record appends a job to the log; its result is filled in when it is known.
func (h *Host) record(u *unit, verb string) int {
	if u.quiet() {
		return -1
	}
	j := Job{Boot: h.boots, Unit: u.name, Verb: verb, Result: "success"}
	if verb != "stop" {
		j.InvocationID = u.invocation
		j.Reads = h.content(h.systemd.reads[u.name])
	}
	if u.def != nil {
		j.Definition = u.def.hash
	}
	h.systemd.log = append(h.systemd.log, j)
	return len(h.systemd.log) - 1
}

func (h *Host) content(paths []string) map[string]string {
	out := map[string]string{}
	for _, p := range paths {
		out[p] = "absent"
		if n, err := h.follow(p, false); err == nil {
			out[p] = text(n.content)
		}
	}
	return out
}

// invocation is a new run's ID: as deterministic as the rest.
func (h *Host) invocation(unit string) string {
	h.systemd.runs++
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", h.boots, h.systemd.runs, unit))
	return fmt.Sprintf("%x", sum[:16])
}
