package osc

import (
	"path"
	"slices"
	"strings"

	systemdunit "github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/unitname"
)

// agentUnit is the service of the agent that applies documents: its own, where a
// document has it.
const agentUnit = unitname.Agent

// AgentParts are what a document says of the agent that applies it.
type AgentParts struct {
	// Field is where the document says it.
	Field string
	// Unit is the definition of the agent's unit, "" where there is none; DropIns are by
	// name.
	Unit    string
	DropIns map[string]string
	// Program is at Path, out of Image as Member, or else with Content; "" is none.
	Path, Image, Member string
	Ahead               map[string]desired.Content
	Content             []byte
}

// KeepAgentOut takes from a sealed state what would put another agent in the place
// of the one that applies it: the agent's unit, its definition and drop-ins, and the
// programs. It is noted by path, and returned; nil is nothing. Files that the agent only
// reads stay.
func KeepAgentOut(st *desired.State, programs ...string) *AgentParts {
	k := &keeper{st: st, programs: programs, parts: &AgentParts{DropIns: map[string]string{}}}
	if f, ok := st.Lookup(desired.FileID(unitDir + agentUnit)).(*desired.File); ok {
		k.called = called(string(f.Content.Data()))
	}
	var out []desired.ID
	for _, r := range st.Resources {
		if k.takes(r) {
			out = append(out, r.ID())
		}
	}
	gone := func(id desired.ID) bool { return slices.Contains(out, id) }
	st.Resources = slices.DeleteFunc(st.Resources, func(r desired.Resource) bool { return gone(r.ID()) })
	for _, r := range st.Resources {
		o := r.Order()
		o.After = slices.DeleteFunc(o.After, gone)
	}
	if k.parts.Field == "" {
		return nil
	}
	return k.parts
}

// called is the program that a definition starts; "" is none.
func called(definition string) string {
	all, err := systemdunit.DeserializeOptions(strings.NewReader(definition))
	if err != nil {
		return ""
	}
	for _, o := range all {
		if o.Section == "Service" && o.Name == "ExecStart" && o.Value != "" {
			word, _, _ := strings.Cut(strings.TrimLeft(o.Value, "@-:+!"), " ")
			return strings.Trim(word, `"'`)
		}
	}
	return ""
}

// keeper is one run of KeepAgentOut.
type keeper struct {
	st       *desired.State
	programs []string
	// called is the program that the document's unit starts.
	called string
	parts  *AgentParts
}

func (k *keeper) isProgram(p string) bool { return p == k.called || slices.Contains(k.programs, p) }

// own says whether a path is the agent's: its definition, a drop-in of it, or a program.
func (k *keeper) own(p string) bool {
	return p == unitDir+agentUnit || strings.HasPrefix(p, unitDir+agentUnit+".d/") || k.isProgram(p)
}

func (k *keeper) note(at string) {
	k.st.Unused = append(k.st.Unused, desired.FieldNote{Path: at, Reason: "it is the agent itself, which takes its own place last and apart from the rest"})
	if k.parts.Field == "" || strings.HasPrefix(k.parts.Field, at) {
		k.parts.Field = at
	}
}

// takes says whether a resource is out, and takes what it says of the agent.
func (k *keeper) takes(r desired.Resource) bool {
	if a, ok := r.(*desired.Artifact); ok {
		return !k.keepOutOf(a)
	}
	if r.ID() != desired.UnitID(agentUnit) && !slices.ContainsFunc(r.FilePaths(), k.own) {
		return false
	}
	k.note(r.Order().Field)
	f, ok := r.(*desired.File)
	switch {
	case !ok:
	case f.Path == unitDir+agentUnit:
		k.parts.Unit = string(f.Content.Data())
	case k.isProgram(f.Path):
		if k.chosen(f.Path) {
			k.parts.Path, k.parts.Image, k.parts.Content = f.Path, "", f.Content.Data()
		}
	default:
		k.parts.DropIns[path.Base(f.Path)] = string(f.Content.Data())
	}
	return true
}

// chosen says whether a program counts: of several, the one that the unit starts.
func (k *keeper) chosen(p string) bool { return p == k.called || k.parts.Path == "" }

// keepOutOf takes the agent's own files from those of an image, and says whether
// others are left.
func (k *keeper) keepOutOf(a *desired.Artifact) bool {
	a.Files = slices.DeleteFunc(a.Files, func(f desired.ArtifactFile) bool {
		if !k.own(f.Path) {
			return false
		}
		k.note(f.Field)
		if k.isProgram(f.Path) && k.chosen(f.Path) {
			k.parts.Path, k.parts.Image, k.parts.Member, k.parts.Ahead = f.Path, a.Image, f.Member, a.Ahead
		}
		return true
	})
	if len(a.Files) == 0 {
		return false
	}
	a.Field = a.Files[0].Field
	return true
}
