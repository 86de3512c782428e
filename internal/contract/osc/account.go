package osc

import (
	"encoding/json"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// staticPods is where kubelet looks for pods of its own.
const staticPods = "/etc/kubernetes/manifests"

// account tells of set fields that have no effect, and of those that berth acts on
// in part.
func (t *translation) account() {
	spec, status := t.doc.Config.Spec, t.doc.Config.Status
	const forUserData = "it is for the controller that makes user data of the document"
	if spec.ProviderConfig != nil {
		t.unused(specPath.Child("providerConfig"), forUserData)
	}
	t.unusedBelow(statusPath.Child("cloudConfig"), status.CloudConfig, forUserData)
	const notInPlace = "berth makes no in-place updates: the rest of the document is applied"
	t.unusedBelow(specPath.Child("inPlaceUpdates"), spec.InPlaceUpdates, notInPlace)
	t.unusedBelow(statusPath.Child("inPlaceUpdates"), status.InPlaceUpdates, notInPlace)
	t.accountFiles()
	t.accountUnits()
}

// unusedBelow tells of each set field of a part of the document.
func (t *translation) unusedBelow(at *field.Path, part any, reason string) {
	b, err := json.Marshal(part)
	if err != nil {
		panic("a type of the API has no JSON: " + err.Error())
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		panic("JSON is none: " + err.Error())
	}
	t.unusedTree(at, tree, reason)
}

func (t *translation) unusedTree(at *field.Path, tree any, reason string) {
	switch tree := tree.(type) {
	case nil:
	case map[string]any:
		for name, inner := range tree {
			t.unusedTree(at.Child(name), inner, reason)
		}
	case []any:
		for i, inner := range tree {
			t.unusedTree(at.Index(i), inner, reason)
		}
	default:
		if tree != "" {
			t.unused(at, reason)
		}
	}
}

func (t *translation) accountFiles() {
	for _, f := range t.doc.allFiles() {
		if isFor(f.of, t.facts.Hostname) && path.Dir(f.of.Path) == staticPods {
			t.partial(f.at, "the file is written, but nobody waits until its pod runs")
		}
	}
}

func (t *translation) accountUnits() {
	for _, u := range merge(t.doc.allUnits()) {
		if u.isTemplate() && u.enabled() {
			t.partial(u.at, "it is a template: only its instances run")
		}
		for name := range u.dropIns {
			if strings.HasPrefix(name, ".") {
				t.unused(u.dropIns[name].at, "systemd does not read files whose names begin with a dot")
			}
		}
	}
}

func (t *translation) partial(at *field.Path, reason string) {
	t.state.Partial = append(t.state.Partial, fieldNote(at, reason))
}
