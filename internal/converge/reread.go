package converge

import "path"

// reread plans that systemd reads its definitions again for a unit that needs no
// restart: it was started with what is wanted, but its definition was another
// meanwhile, and systemd would go by that at the unit's next start.
func (up *unitPlan) reread() error {
	reason := up.redefined()
	if reason == "" {
		drops, err := dropIns(up.h, up.u.Name)
		if err != nil || !up.stale(up.status, drops) {
			return err
		}
		reason = "systemd holds another definition"
	}
	up.t.act(VerbReload, reason, DisruptNone)
	up.t.live = up.reload
	return nil
}

// redefined names the first part of the definition that this plan changes.
func (up *unitPlan) redefined() string {
	if len(up.gone) > 0 {
		return up.gone[0] + " goes"
	}
	for _, in := range up.inputs {
		if up.changes[in] && up.defines(in) {
			return in + " changes"
		}
	}
	for _, q := range up.t.puts { // a mask that goes
		if q.kind == putDelete && path.Base(q.path) == up.u.Name {
			return q.path + " goes"
		}
	}
	return ""
}

// defines says whether a path is the unit's definition or one of its drop-ins.
func (up *unitPlan) defines(p string) bool {
	return p == up.fragment || path.Base(path.Dir(p)) == up.u.Name+".d"
}
