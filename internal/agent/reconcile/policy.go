package reconcile

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
)

// policyOf is what is done about drift of a resource. Of several names that it has,
// the strictest policy counts: ignore, then report, then repair.
func policyOf(d config.Drift, id desired.ID, names []string) config.Policy {
	if kind, name, ok := strings.Cut(string(id), ":"); ok {
		if kind == "block" { // it is a part of a file, and named by both
			name, _, _ = strings.Cut(name, "#")
		}
		names = append(names, name)
	}
	out := config.Policy("")
	for _, n := range names {
		out = stricter(out, policyOfName(d, n))
	}
	return out
}

func policyOfName(d config.Drift, name string) config.Policy {
	out := d.Policy
	for _, p := range d.Paths {
		if p.Path == name || strings.HasPrefix(p.Path, "/") && strings.HasPrefix(name, strings.TrimSuffix(p.Path, "/")+"/") {
			out = p.Policy
		}
	}
	return out
}

func stricter(a, b config.Policy) config.Policy {
	for _, p := range []config.Policy{config.Ignore, config.Report} {
		if a == p || b == p {
			return p
		}
	}
	return b
}

// decide is what becomes of an action against drift from a state.
func (r *Reconciler) decide(st *desired.State, paused bool) func(converge.Action) converge.Decision {
	now := r.o.Host.Now()
	return func(a converge.Action) converge.Decision {
		var names []string
		if res := st.Lookup(a.ID); res != nil {
			names = res.FilePaths()
		}
		switch p := policyOf(r.o.Drift, a.ID, names); {
		case p == config.Ignore:
			return converge.Skip
		case p == config.Report, paused, r.own(a.ID), r.guard.stands(a.ID, now):
			return converge.Report
		}
		return converge.Do
	}
}

// own says whether a resource is a file that the agent goes by and that is there.
func (r *Reconciler) own(id desired.ID) bool {
	return slices.ContainsFunc(r.o.Own, func(p string) bool {
		_, err := r.o.Host.Lstat(p)
		return id == desired.FileID(p) && err == nil
	})
}
