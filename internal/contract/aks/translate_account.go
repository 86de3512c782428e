package aks

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/desired"
)

// verdict is what becomes of a field that is set.
type verdict struct {
	kind   verdictKind
	reason string
}

type verdictKind int

const (
	inState   verdictKind = iota // another value makes another state
	elsewhere                    // something before or after translation acts on it
	unused                       // nothing acts on it, for a reason
	unhandled                    // this version does not act on it yet
	partly                       // a part of it is in force; counts as unhandled
)

// judge says what becomes of a field in one configuration.
type judge func(*translation) verdict

func always(v verdict) judge { return func(*translation) verdict { return v } }

func toState(*translation) verdict { return verdict{kind: inState} }

func later(*translation) verdict { return verdict{kind: unhandled} }

func inPart(*translation) verdict { return verdict{kind: partly} }

func useless(reason string) judge { return always(verdict{unused, reason}) }

// when asks one of two judges.
func when(condition func(*translation) bool, yes, no judge) judge {
	return func(t *translation) verdict {
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
func ofMember(j judge) judge { return when((*translation).joins, j, useless(noMember)) }

// account sorts every set field of the configuration.
func (t *translation) account() {
	t.visit(nil, t.cfg.ProtoReflect())
	t.accountFlags()
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
		t.note(path.String())
		return true
	})
}

func (t *translation) note(path string) {
	switch v := judgeOf(path)(t); v.kind {
	case unused:
		t.state.Unused = append(t.state.Unused, desired.FieldNote{Path: path, Reason: v.reason})
	case unhandled, partly:
		t.state.Unhandled = append(t.state.Unhandled, path)
	}
}

// judgeOf finds the entry of a field, or of the closest message around it. A
// field without one is reported as not acted on.
func judgeOf(path string) judge {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '.'), 0)] {
		if j, ok := judges[p]; ok {
			return j
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
	for i, path := range t.state.Unhandled {
		t.state.Unhandled[i] = doc.Path(path)
	}
	for _, r := range t.state.Resources {
		r.Order().Field = doc.Path(r.Order().Field)
	}
}
