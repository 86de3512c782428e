package selfupdate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

const (
	unitDir   = "/etc/systemd/system/"
	unitFile  = unitDir + config.Unit
	dropInDir = unitFile + ".d"
	// legacyUnit is of the agent before the published one.
	legacyUnit = "cloud-config-downloader.service"
	// unitMode is that of definitions and drop-ins, as published.
	unitMode = 0o600
)

// contractKind marks the contract of a version among those that the engine keeps.
const contractKind = "berth/agent"

// version is one agent: the contract that the engine keeps of it.
type version struct {
	Kind string `json:"kind"`
	// Program is the path that the unit calls, a link to Copy. It is "" for a program
	// that stands where it is: that is Copy where berth put it there, and none where it
	// is somebody else's.
	Program string `json:"program,omitempty"`
	Copy    string `json:"copy,omitempty"`
	// Before is the copy of the version before, for the way back.
	Before string `json:"before,omitempty"`
	// Unit is the unit's definition; DropIns are by name.
	Unit    string            `json:"unit"`
	DropIns map[string]string `json:"dropIns,omitempty"`
	// Mode is that of the definition.
	Mode uint32 `json:"mode"`
	// Foreign: the program is not berth, and can't say that it does its work.
	Foreign bool `json:"foreign,omitempty"`
	// By is the run of the agent's unit that put the version in place: another run is
	// the version itself.
	By string `json:"by,omitempty"`
}

func (v *version) document() []byte {
	v.Kind = contractKind
	text, err := json.Marshal(v)
	if err != nil {
		panic("a version has no JSON: " + err.Error())
	}
	return text
}

func parse(document []byte) (*version, bool) {
	v := &version{}
	return v, json.Unmarshal(document, v) == nil && v.Kind == contractKind
}

// IsVersion says whether a kept contract is one of this package.
func IsVersion(document []byte) bool {
	_, ok := parse(document)
	return ok
}

// State is what a kept version asks of the machine: of who runs it, that the agent is
// started anew where it changed.
func State(h host.FS, document []byte) (*desired.State, error) {
	v, ok := parse(document)
	if !ok {
		return nil, errors.New("the kept version of the agent can't be read")
	}
	return v.state(h, desired.Started)
}

// state is the version as a state. The agent itself leaves its activation alone: it
// would cut itself off. sources are where copies come from that are not there yet.
func (v *version) state(h host.FS, now desired.Activation, sources ...desired.Resource) (*desired.State, error) {
	st := &desired.State{Owner: desired.OwnerBerth}
	var last []desired.ID
	for _, p := range v.copies() {
		r := copied(p, sources)
		last = append(last, r.ID())
		st.Add(r)
	}
	unit := &desired.Unit{Name: config.Unit, Enablement: desired.Enabled, Activation: now, Triggers: []string{unitFile}}
	if v.Program != "" {
		link := &desired.Link{Path: v.Program, Target: v.Copy}
		link.After = last
		unit.After, unit.Triggers = append(unit.After, link.ID()), append(unit.Triggers, v.Program)
		st.Add(link)
	}
	for _, f := range v.definitions() {
		unit.After = append(unit.After, f.ID())
		st.Add(f)
	}
	st.Add(unit)
	gone, err := Retired(h, unit.ID())
	if err != nil {
		return nil, err
	}
	st.Add(gone...)
	return st, st.Seal()
}

// copied is a copy at its path: out of a source, else one that is there.
func copied(p string, sources []desired.Resource) desired.Resource {
	for _, r := range sources {
		if slices.Contains(r.FilePaths(), p) {
			return r
		}
	}
	return &desired.Artifact{Name: "agent at " + p, Files: []desired.ArtifactFile{{Path: p, Mode: 0o755}}}
}

// runs is the program that the version starts, at the path where it stays; "" is none.
func (v *version) runs() string {
	program := called(v.Unit, v.DropIns)
	if program != "" && program == v.Program {
		return v.Copy
	}
	return program
}

func (v *version) definitions() []*desired.File {
	file := func(p, text string, mode desired.Mode) *desired.File {
		return &desired.File{Path: p, Content: desired.Text(text), Mode: mode, Life: desired.Managed}
	}
	out := []*desired.File{file(unitFile, v.Unit, desired.Mode(v.Mode))}
	for _, name := range slices.Sorted(maps.Keys(v.DropIns)) {
		out = append(out, file(path.Join(dropInDir, name), v.DropIns[name], unitMode))
	}
	return out
}

// same says whether two versions ask for the same, but for what is kept for the way
// back and how it came there.
func (v *version) same(o *version) bool {
	a, b := *v, *o
	a.Before, b.Before, a.By, b.By = "", "", "", ""
	return bytes.Equal(a.document(), b.document())
}

func (v *version) copies() []string {
	var out []string
	for _, p := range []string{v.Copy, v.Before} {
		if p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// Retired are the units that an agent replaces, where the machine has them. The init
// unit runs the command that says so: it is not stopped, it just does not come back.
func Retired(h host.FS, after desired.ID) ([]desired.Resource, error) {
	var out []desired.Resource
	for name, now := range map[string]desired.Activation{config.InitUnit: desired.AnyActivation, legacyUnit: desired.Stopped} {
		_, err := h.Lstat(unitDir + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", name, err)
		}
		gone := &desired.Unit{Name: name, Enablement: desired.Disabled, Activation: now}
		gone.After = []desired.ID{after}
		out = append(out, gone)
	}
	return out, nil
}
