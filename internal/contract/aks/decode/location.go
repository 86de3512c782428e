package decode

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// location is a position in a configuration: canonical by the names of the .proto, path as the document spells it.
type location struct {
	canonical string
	path      *field.Path
}

func (p location) name(fd protoreflect.FieldDescriptor, spelled string) location {
	canonical := string(fd.Name())
	if p.canonical != "" {
		canonical = p.canonical + "." + canonical
	}
	return location{canonical, p.child(spelled)}
}

// child is the path of a member that the contract does not know.
func (p location) child(spelled string) *field.Path {
	if p.path == nil {
		return field.NewPath(spelled)
	}
	return p.path.Child(spelled)
}

func (p location) key(k string) location {
	at := p.path.Key(k)
	return location{p.canonical + "[" + k + "]", at}
}

func (p location) index(i int) location {
	at := p.path.Index(i)
	return location{p.canonical + at.String()[len(p.path.String()):], at}
}

// String is the path as the document spells it, empty for the document itself.
func (p location) String() string {
	if p.path == nil {
		return ""
	}
	return p.path.String()
}

// parent drops the last step of a canonical path.
func parent(canonical string) string {
	return canonical[:max(strings.LastIndexAny(canonical, ".["), 0)]
}

// spelling remembers how the document writes names, so that a complaint about a value,
// or about one that is missing, uses its words. Its zero value spells as the .proto does.
type spelling struct {
	said         map[string]string // canonical → name as written
	camel, snake int               // names that can only be the one or the other
}

func (s *spelling) remember(at location, fd protoreflect.FieldDescriptor, spelled string) {
	if s.said == nil {
		s.said = map[string]string{}
	}
	s.said[at.canonical] = spelled
	switch {
	case string(fd.Name()) == fd.JSONName():
	case spelled == string(fd.Name()):
		s.snake++
	default:
		s.camel++
	}
}

// of returns the location of a field in a message at p, which the document may not mention.
func (s *spelling) of(p location, fd protoreflect.FieldDescriptor) location {
	canonical := p.name(fd, string(fd.Name())).canonical
	if spelled, ok := s.said[canonical]; ok {
		return p.name(fd, spelled)
	}
	return p.name(fd, s.unsaid(fd))
}

// step is a name and the keys in brackets after it.
var step = lazyregexp.New(`([^.\[]+)((?:\[[^\]]*\])*)`)

// respell replaces each name of a canonical path by the one in the document, or
// by the one that it would have there.
func (s *spelling) respell(canonical string) string {
	var seen, out string
	message := (&aksnodeconfigv1.Configuration{}).ProtoReflect().Descriptor()
	for i, m := range step().FindAllStringSubmatch(canonical, -1) {
		name, keys, dot := m[1], m[2], "."
		if i == 0 {
			dot = ""
		}
		seen += dot + name
		var fd protoreflect.FieldDescriptor
		if message != nil {
			fd = message.Fields().ByName(protoreflect.Name(name))
		}
		out += dot + cmp.Or(s.said[seen], s.unsaid(fd), name) + keys
		seen += keys
		message = inside(fd)
	}
	return out
}

// unsaid is how a document that does not name a field would; empty for no field.
func (s *spelling) unsaid(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd == nil:
		return ""
	case s.camel > s.snake:
		return fd.JSONName()
	}
	return string(fd.Name())
}

// inside is the message that a field, or a member of a map, holds; nil for none.
func inside(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	switch {
	case fd == nil:
		return nil
	case fd.IsMap():
		return fd.MapValue().Message()
	}
	return fd.Message()
}
