package aks

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
)

// disposition is what becomes of a field that is set.
type disposition struct {
	kind   dispositionKind
	reason string
}

type dispositionKind int

const (
	inState   dispositionKind = iota // another value makes another state
	elsewhere                        // something before or after translation acts on it
	unused                           // nothing acts on it, for a reason
	unhandled                        // it is no part of this version's contract
	partly                           // a part of it is in force
)

// rule says what becomes of a field in one configuration.
type rule func(*translation) disposition

func always(v disposition) rule { return func(*translation) disposition { return v } }

func toState(*translation) disposition { return disposition{kind: inState} }

func later(*translation) disposition { return disposition{kind: unhandled} }

// inPart is a field that is in force but for what the reason says.
func inPart(reason string) rule { return always(disposition{partly, reason}) }

func useless(reason string) rule { return always(disposition{unused, reason}) }

// when takes one of two rules.
func when(condition func(*translation) bool, yes, no rule) rule {
	return func(t *translation) disposition {
		if condition(t) {
			return yes(t)
		}
		return no(t)
	}
}

const (
	unread   = "nothing on the node reads it"
	noMember = "an image that is being prepared joins no cluster"
)

// ofMember is a field that only a node with a cluster has a use for.
func ofMember(r rule) rule { return when((*translation).joins, r, useless(noMember)) }

// account sorts every set field of the configuration.
func (t *translation) account() {
	t.visit(nil, t.cfg.ProtoReflect())
	t.accountFlags()
	t.accountFeatures()
}

func (t *translation) visit(at *field.Path, m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		path := field.NewPath(string(fd.Name()))
		if at != nil {
			path = at.Child(string(fd.Name()))
		}
		if fd.Message() != nil && !fd.IsMap() && !fd.IsList() {
			t.visit(path, v.Message())
			return true
		}
		if fd.Kind() == protoreflect.StringKind && !fd.IsList() && v.Interface() == "" {
			return true // how the contract says "not set" where it says so at all
		}
		t.note(path.String())
		return true
	})
}

func (t *translation) note(path string) {
	switch v := ruleOf(path)(t); v.kind {
	case unused:
		t.state.Unused = append(t.state.Unused, desired.FieldNote{Path: path, Reason: v.reason})
	case partly:
		t.state.Partial = append(t.state.Partial, desired.FieldNote{Path: path, Reason: v.reason})
	case unhandled:
		t.state.Unhandled = append(t.state.Unhandled, path)
	}
}

// ruleOf finds the entry of a field, or of the closest message around it. Each field of
// the contract has one; a field without is reported as not acted on.
func ruleOf(path string) rule {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		if r, ok := accountRules[p]; ok {
			return r
		}
	}
	return later
}

// accountFlags names the flags that kubelet is not given though the contract
// has them.
func (t *translation) accountFlags() {
	settings, err := t.kubeletFlagsAndConfig()
	if err != nil {
		return
	}
	for _, flag := range slices.Sorted(maps.Keys(settings.Flags)) {
		reason := settings.Withheld(flag)
		if t.facts.RotationOff && flag == kubelet.RotationFlag {
			reason = byTag
		}
		if !t.joins() && flag != cgroupFlag { // the runtime of an image has a driver too
			reason = noMember
		}
		if reason != "" {
			path := field.NewPath("kubelet_config", "kubelet_flags").Key(flag)
			t.state.Unused = append(t.state.Unused, desired.FieldNote{Path: path.String(), Reason: reason})
		}
	}
}

// respell puts the document's words in the place of those of the .proto.
func (t *translation) respell(doc *Document) {
	for i, n := range t.state.Unused {
		t.state.Unused[i].Path = doc.Path(n.Path)
	}
	for i, n := range t.state.Partial {
		t.state.Partial[i].Path = doc.Path(n.Path)
	}
	for i, path := range t.state.Unhandled {
		t.state.Unhandled[i] = doc.Path(path)
	}
	for _, r := range t.state.Resources {
		r.Order().Field = doc.Path(r.Order().Field)
	}
}
