package osc

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/unitname"
)

// AgentUnit is the service of the agent that applies documents: its own, where a
// document has it.
const AgentUnit = unitname.Agent

// Agent are the resources of a state which are the agent itself: its unit, the
// definition and drop-ins of that, and what its change restarts the unit for, the
// program among it. None, where the document has no such unit.
func Agent(st *desired.State) []desired.ID {
	u, ok := st.Lookup(desired.UnitID(AgentUnit)).(*desired.Unit)
	if !ok {
		return nil
	}
	out := []desired.ID{u.ID()}
	for _, r := range st.Resources {
		if slices.ContainsFunc(r.FilePaths(), func(p string) bool { return isPartOf(u, p) }) {
			out = append(out, r.ID())
		}
	}
	return out
}

func isPartOf(u *desired.Unit, p string) bool {
	return isDefinition(u.Name, p) || slices.Contains(u.Triggers, p)
}

// isDefinition says whether a path is a unit's definition or a drop-in of it.
func isDefinition(unit, p string) bool {
	return p == unitDir+unit || strings.HasPrefix(p, unitDir+unit+".d/")
}
