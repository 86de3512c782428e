package osc

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

func (v *validation) units() {
	files := sets.New[string]()
	for _, f := range v.doc.allFiles() {
		files.Insert(f.of.Path)
	}
	for _, u := range v.doc.allUnits() {
		v.unit(u, files)
	}
}

func (v *validation) unit(u located[v1alpha1.Unit], files sets.Set[string]) {
	if v.require(u.at.Child("name"), u.of.Name) && !isUnitName(u.of.Name) {
		v.refuse(u.at.Child("name"), "%q is no name of a unit (systemd.unit(5))", u.of.Name)
	}
	if c := u.of.Command; c != nil && !slices.Contains([]v1alpha1.UnitCommand{v1alpha1.CommandStart, v1alpha1.CommandRestart, v1alpha1.CommandStop}, *c) {
		v.note(u.at.Child("command"), "this version of berth does not know the command; it is taken for a restart, as published")
	}
	for i, d := range u.of.DropIns {
		v.dropIn(u.at.Child("dropIns").Index(i), d)
	}
	for i, p := range u.of.FilePaths {
		at := u.at.Child("filePaths").Index(i)
		if p = v.path(at, p); !files.Has(p) {
			v.refuse(at, "%q is no file of the document (the API's admission)", p)
		}
		u.of.FilePaths[i] = p
	}
}

// unitName is what systemd takes for one: after the first @ there may be others.
var unitName = lazyregexp.New(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.@\\-]*)?\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$`)

func isUnitName(name string) bool { return len(name) <= 255 && unitName().MatchString(name) }

func (v *validation) dropIn(at *field.Path, d v1alpha1.DropIn) {
	v.require(at.Child("content"), d.Content)
	switch name := at.Child("name"); {
	case !v.require(name, d.Name):
	case strings.ContainsAny(d.Name, "/\x00"), len(d.Name) > 255, d.Name == ".", d.Name == "..":
		v.refuse(name, "%q is no name of a file", d.Name)
	case !isReadDropIn(d.Name):
		v.note(name, "systemd reads only drop-ins whose names end in .conf and do not begin with a dot: this one is written and has no effect")
	}
}
