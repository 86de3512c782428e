package memory

import (
	"context"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/host"
)

// submit runs a job under the job lock; a unit that hangs keeps the caller, not
// the lock.
func (h *Host) submit(ctx context.Context, job, name string, run func() (string, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := host.CheckUnit(name); err != nil && job != daemonReload {
		return err
	}
	result, err := h.exclusive(run)
	if f := host.Begun(ctx); f != nil && err == nil && (job == "start" || job == "restart") && (result == hanging || h.statusOf(name).ActiveState == "active") {
		f()
	}
	switch {
	case err != nil:
		return err
	case result == hanging:
		return wait(ctx)
	case result != "done":
		return &host.JobError{Unit: name, Job: job, Result: result, Status: h.statusOf(name)}
	}
	return nil
}

// hanging stands for a job that has no result.
const hanging = ""

// daemonReload is the job that is of no unit.
const daemonReload = "daemon-reload"

func (h *Host) exclusive(run func() (string, error)) (string, error) {
	h.jobMu.Lock()
	defer h.jobMu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off {
		return "", errOff
	}
	h.tick()
	h.sweep()
	return run()
}

func (h *Host) statusOf(name string) host.UnitStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status(name)
}

// start is the start job of a unit that may run already.
func (h *Host) start(name, verb string) (string, error) {
	u := h.unit(name)
	if err := h.startable(u); err != nil {
		return "", err
	}
	if u.isActive() {
		return "done", nil
	}
	return h.startSet(u, map[string]string{u.name: verb}, verb)
}

// startSet starts a unit with all it pulls in; verbs says how units are logged
// that are more than pulled in.
func (h *Host) startSet(u *unit, verbs map[string]string, pulled string) (string, error) {
	set := map[string]*unit{}
	for _, n := range sortedKeys(verbs) {
		if err := h.closure(n, set); err != nil && n == u.name {
			return "", err
		}
	}
	if pulled == "restart" {
		pulled = "start"
	}
	for _, one := range set {
		one.job = true
		defer func() { one.job = false }()
	}
	results := map[string]string{}
	for _, one := range ordered(set) {
		verb := verbs[one.name]
		if verb == "" {
			verb = pulled
		}
		results[one.name] = h.startOne(one, verb, results)
	}
	return results[u.name], nil
}

// startOne starts one unit after those it needs; results hold what became of
// them.
func (h *Host) startOne(u *unit, verb string, results map[string]string) string {
	for _, need := range u.needs() {
		switch r, tried := results[h.knownAs(need)]; {
		case tried && r == hanging:
			return hanging
		case tried && r != "done":
			return "dependency"
		}
	}
	for _, n := range u.list("Requisite") {
		if !h.unit(n).isActive() {
			return "dependency"
		}
	}
	switch {
	case u.isActive():
		return "done"
	case u.isStarting():
		return h.join(u)
	case !h.tested(u, "Condition", &u.condition):
		return "done"
	case !h.tested(u, "Assert", &u.assert):
		return "assert"
	case h.limited(u):
		result := "start-limit-hit"
		if u.result != "" && u.result != "success" {
			result = u.result // what it failed of stays
		}
		h.fail(u, result, u.status)
		return "failed"
	case !h.triggerable(u):
		return "failed"
	}
	if u.sub == autoRestart && verb == "start" {
		h.now = latest(h.now, u.again) // it waits for systemd's own
		u.restarts++
	}
	return h.execute(u, verb)
}

func (h *Host) stop(name string) (string, error) {
	u := h.unit(name)
	if err := u.refuses("Unit.RefuseManualStop"); err != nil {
		return "", err
	}
	for _, f := range h.stopOrder(u) {
		h.halt(f, "stop")
	}
	return "done", nil
}

// stopOrder is a unit with its followers, last started first.
func (h *Host) stopOrder(u *unit) []*unit {
	set := map[string]*unit{u.name: u}
	h.followers(u, set)
	out := ordered(set)
	slices.Reverse(out)
	return out
}

// halt ends a unit; with an empty verb it is part of a restart and no job.
func (h *Host) halt(u *unit, verb string) {
	if !u.isUp() {
		return
	}
	if verb != "" {
		h.record(u, verb)
	}
	if u.isStarting() && u.oneshot() {
		h.fail(u, "signal", sigterm) // only for a daemon is SIGTERM a clean end
		return
	}
	h.tick()
	h.unmountUnit(u)
	u.active, u.sub, u.result, u.pid = "inactive", "dead", "success", 0
}

const sigterm = 15

func (h *Host) restart(name string) (string, error) {
	u := h.unit(name)
	if err := h.startable(u); err != nil {
		return "", err
	}
	if err := u.refuses("Unit.RefuseManualStop"); err != nil {
		return "", err
	}
	verbs := map[string]string{}
	for _, f := range h.stopOrder(u) {
		verbs[f.name] = "restart"
		h.halt(f, "")
	}
	return h.startSet(u, verbs, "restart")
}

func (h *Host) reload(name string) (string, error) {
	u := h.unit(name)
	if err := loadError(u); err != nil {
		return "", err
	}
	switch {
	case path.Ext(u.name) != ".mount" && len(u.def.settings["Service.ExecReload"]) == 0:
		return "", &host.UnitError{Unit: name, Err: host.ErrNotApplicable}
	case !u.isActive():
		return "invalid", nil
	}
	h.record(u, "reload")
	h.tick()
	return "done", nil
}
