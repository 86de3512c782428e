package memory

import (
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// exitExec is the status of a service whose program can't be executed
// (systemd.exec(5), EXIT_EXEC).
const exitExec = 203

// execute begins a run of a unit and returns the result of its start job.
func (h *Host) execute(u *unit, verb string) string {
	u.invocation = h.invocation(u.name)
	u.recent = append(u.recent, h.now)
	at := h.record(u, verb)
	switch path.Ext(u.name) {
	case ".service":
	case ".mount":
		return h.startMount(u, at)
	case ".swap":
		return h.startSwap(u, at)
	default:
		h.enter(u, activeSub(u.name))
		return "done"
	}
	h.systemd.runs++
	u.started, u.status, u.result = h.tick(), 0, "success"
	out := h.outcome(u, verb)
	switch {
	case out.Hang, out.Slow:
		u.active, u.sub, u.pid, u.slow = "activating", "start", h.pid(), out.Slow
		return hanging
	case out.Status != 0 || out.Result != "":
		return h.failed(u, out, at)
	}
	h.succeed(u)
	return "done"
}

// outcome asks the programs of a unit, then its behaviour, how the start goes.
func (h *Host) outcome(u *unit, verb string) Outcome {
	s := u.def.settings
	for _, e := range append(s.exec("ExecStartPre"), s.exec("ExecStart")...) {
		if _, err := h.lookPath(e.path); err != nil && !e.ignore {
			return Outcome{Status: exitExec}
		}
	}
	if out := h.runModelled(s.exec("ExecStartPre")); out.Status != 0 {
		return out
	}
	if b := h.systemd.behaviours[u.name]; b != nil {
		return h.behave(b, Start{Unit: u.name, Verb: verb})
	}
	if u.oneshot() {
		return h.runModelled(s.exec("ExecStart"))
	}
	return Outcome{}
}

// behave asks a behaviour, which may use the host's files.
func (h *Host) behave(b Behaviour, s Start) Outcome {
	h.mu.Unlock()
	defer h.mu.Lock()
	return b(s)
}

// runModelled runs those programs that have a model.
func (h *Host) runModelled(programs []execLine) Outcome {
	for _, e := range programs {
		p, err := h.lookPath(e.path)
		f := h.programs[p]
		if err != nil || f == nil {
			continue
		}
		h.mu.Unlock()
		out := f(host.Command{Path: e.path, Args: e.args})
		h.mu.Lock()
		if out.ExitCode != 0 && !e.ignore {
			return Outcome{Status: int32(out.ExitCode)}
		}
	}
	return Outcome{}
}

func (h *Host) pid() uint32 { return uint32(1000 + h.systemd.runs) }

func (h *Host) enter(u *unit, sub string) {
	u.active, u.sub, u.result = "active", sub, "success"
	h.tick()
	h.entered(u)
}

func (u *unit) oneshot() bool {
	return u.def != nil && u.def.settings.last("Service.Type") == "oneshot"
}

// join is a start job for a unit that is starting: systemd begins no other run,
// whatever has changed since this one began.
func (h *Host) join(u *unit) string {
	if !u.slow {
		return hanging
	}
	u.slow = false
	h.succeed(u)
	return "done"
}

func (h *Host) succeed(u *unit) {
	switch {
	case u.oneshot() && u.def.settings.bool("Service.RemainAfterExit"):
		h.enter(u, "exited")
	case u.oneshot():
		u.active, u.sub = "inactive", "dead"
	default:
		h.enter(u, "running")
		u.pid = h.pid()
	}
}

// failed is a start that went wrong. The job of a simple service is done as soon
// as its process is forked, whatever becomes of it.
func (h *Host) failed(u *unit, out Outcome, at int) string {
	if out.Result == "" {
		out.Result = "exit-code"
	}
	h.systemd.log[at].Result = out.Result
	h.fail(u, out.Result, out.Status)
	if restarts(u.def.settings) {
		u.active, u.sub, u.again = "activating", autoRestart, h.now.Add(restartPause(u.def.settings))
	}
	if t := u.def.settings.last("Service.Type"); path.Ext(u.name) == ".service" && (t == "" || t == "simple" || t == "idle") {
		h.entered(u)
		return "done"
	}
	return "failed"
}

// autoRestart is the sub-state in which a service waits for systemd's own restart.
const autoRestart = "auto-restart"

// restartPause is RestartSec=, 100 ms where nothing is said.
func restartPause(s settings) time.Duration {
	if v := s.last("Service.RestartSec"); v != "" {
		return span(v)
	}
	return 100 * time.Millisecond
}

// restartsUntil does the restarts that are due until a time, each at its own.
func (h *Host) restartsUntil(end time.Time) {
	for {
		var next *unit
		for _, name := range sortedKeys(h.systemd.units) {
			if u := h.systemd.units[name]; u.sub == autoRestart && !u.again.After(end) && (next == nil || u.again.Before(next.again)) {
				next = u
			}
		}
		if next == nil {
			return
		}
		h.now = latest(h.now, next.again)
		h.restartAgain(next)
	}
}

// restartAgain is a restart of systemd's own: one that exceeds the start limit is
// the last, and what the unit failed of stays.
func (h *Host) restartAgain(u *unit) {
	if u.def == nil || h.limited(u) {
		u.active, u.sub = "failed", "failed"
		return
	}
	u.restarts++
	h.execute(u, autoRestart)
}

func (h *Host) fail(u *unit, result string, status int32) {
	h.tick()
	u.active, u.sub, u.result, u.status, u.pid = "failed", "failed", result, status, 0
}

func restarts(s settings) bool {
	switch s.last("Service.Restart") {
	case "always", "on-failure", "on-abnormal":
		return true
	}
	return false
}

// limited says whether a further start exceeds the start limit (systemd.unit(5):
// five in ten seconds unless the unit says otherwise).
func (h *Host) limited(u *unit) bool {
	s := u.def.settings
	burst, err := strconv.Atoi(s.last("Unit.StartLimitBurst"))
	if err != nil {
		burst = 5
	}
	window := 10 * time.Second
	if v := s.last("Unit.StartLimitIntervalSec"); v != "" {
		window = span(v)
	}
	n := 0
	for _, t := range u.recent {
		if h.now.Sub(t) < window {
			n++
		}
	}
	return window > 0 && burst > 0 && n >= burst
}

// span reads a time span of one term: "10", "10s", "5min"; others are zero.
func span(v string) time.Duration {
	if sec, err := strconv.Atoi(v); err == nil {
		return time.Duration(sec) * time.Second
	}
	d, err := time.ParseDuration(strings.Replace(v, "min", "m", 1))
	if err != nil {
		return 0
	}
	return d
}
