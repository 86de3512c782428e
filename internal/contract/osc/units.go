package osc

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/unitname"
)

// unit is what all that a document says of one name comes to.
type unit struct {
	name      string
	at        *field.Path
	command   *v1alpha1.UnitCommand
	enable    *bool
	content   *part
	dropIns   map[string]part
	filePaths []string
}

// part is a text of a unit's definition.
type part struct {
	at   *field.Path
	text string
}

// merge is the units by name, in the order in which the document first names them.
func merge(all []located[v1alpha1.Unit]) []*unit {
	byName := map[string]*unit{}
	var out []*unit
	for _, u := range all {
		m := byName[u.of.Name]
		if m == nil {
			m = &unit{name: u.of.Name, at: u.at, dropIns: map[string]part{}}
			byName[u.of.Name] = m
			out = append(out, m)
		}
		m.override(u)
	}
	return out
}

func (m *unit) override(u located[v1alpha1.Unit]) {
	if u.of.Command != nil {
		m.command = u.of.Command
	}
	if u.of.Enable != nil {
		m.enable = u.of.Enable
	}
	if u.of.Content != nil {
		m.content = &part{u.at.Child("content"), *u.of.Content}
	}
	for i, d := range u.of.DropIns {
		m.dropIns[d.Name] = part{u.at.Child("dropIns").Index(i), d.Content}
	}
	for _, p := range u.of.FilePaths {
		if !slices.Contains(m.filePaths, p) {
			m.filePaths = append(m.filePaths, p)
		}
	}
}

// enabled: what a document does not say is enabled.
func (m *unit) enabled() bool { return m.enable == nil || *m.enable }

// runs: a unit that does not start at boot does not run, either.
func (m *unit) runs() bool {
	return m.enabled() && (m.command == nil || *m.command != v1alpha1.CommandStop)
}

// isMentioned: the document neither defines the unit nor says whether it is enabled.
func (m *unit) isMentioned() bool {
	return m.enable == nil && m.content == nil && len(m.dropIns) == 0
}

func (m *unit) isTemplate() bool { return unitname.IsTemplate(m.name) }

const unitDir = "/etc/systemd/system/"

// unitMode is that of definitions and drop-ins, as published: no document can give another.
const unitMode = 0o600

// units adds every unit with the files that it consists of.
func (t *translation) units() {
	all := merge(t.doc.allUnits())
	for _, u := range all {
		if u.content != nil {
			t.add(u.content.at, definition(unitDir+u.name, u.content.text))
		}
		for name, d := range u.dropIns {
			t.add(d.at, definition(path.Join(unitDir, u.name+".d", name), d.text))
		}
		t.add(u.at, t.wanted(u))
	}
}

func definition(p, text string) *desired.File {
	return &desired.File{Path: p, Content: desired.Text(text), Mode: unitMode, AnyMode: true, Life: desired.Managed}
}

// wanted is whether the unit starts at boot and runs.
func (t *translation) wanted(u *unit) *desired.Unit {
	out := &desired.Unit{Name: u.name, Enablement: desired.Enabled, Activation: desired.Started, Mentioned: u.isMentioned(), Triggers: slices.Sorted(slices.Values(u.filePaths))}
	if !u.enabled() {
		out.Enablement = desired.Disabled
	}
	switch {
	case u.isTemplate():
		out.Activation = desired.AnyActivation
	case !u.runs():
		out.Activation = desired.Stopped
	}
	return out
}

// runtimeFirst has kubelet start when containerd runs.
func (t *translation) runtimeFirst() {
	runtime, node := t.unit(containerd.Unit), t.unit(kubelet.Unit)
	if runtime != nil && node != nil {
		node.After = append(node.After, runtime.ID())
	}
}

func (t *translation) unit(name string) *desired.Unit {
	for _, r := range t.state.Resources {
		if u, ok := r.(*desired.Unit); ok && u.Name == name {
			return u
		}
	}
	return nil
}
