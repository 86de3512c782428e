package decode

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// Decode reads a configuration and validates it. Names may be snake_case or lowerCamel. Unknown fields and
// enum values become notes. Every error of the document is in one answer, a *DocumentError: text that is
// not JSON, values of a wrong type, duplicates, and all that Validate finds.
func Decode(data []byte) (*Document, error) {
	return decode(data, (*validator).configuration)
}

// Read is Decode without Validate: the document may be incomplete.
func Read(data []byte) (*Document, error) {
	return decode(data, func(*validator, *aksnodeconfigv1.Configuration) {})
}

func decode(data []byte, validate func(*validator, *aksnodeconfigv1.Configuration)) (*Document, error) {
	d := decoder{data: data, offsets: map[string]int{}}
	root, syntax := parse(data)
	if syntax != nil {
		return nil, d.refusal([]fieldError{{offset: syntax.offset, err: unreadable(syntax)}})
	}
	cfg := &aksnodeconfigv1.Configuration{}
	d.message(location{}, root, cfg.ProtoReflect())
	v := validator{spelling: d.spelling, failed: d.failed()}
	validate(&v, cfg)
	d.remark(v.notes)
	if errs := append(d.errs, d.located(v.errs)...); len(errs) > 0 {
		return nil, d.refusal(errs)
	}
	d.noteVersion(cfg)
	return &Document{Config: cfg, Notes: d.sortedNotes(), spelling: d.spelling}, nil
}

type decoder struct {
	spelling
	data    []byte
	offsets map[string]int // canonical → where its value starts
	errs    []fieldError
	notes   []offsetNote
}

func (d *decoder) message(at location, n *node, m protoreflect.Message) {
	if n.kind != object {
		d.refuse(at, n.offset, &field.Error{Type: field.ErrorTypeTypeInvalid, Field: at.String(), BadValue: field.OmitValueType{},
			Detail: "expected an object, got " + n.kind.String()})
		return
	}
	d.offsets[at.canonical] = n.offset
	seen := map[protoreflect.FieldNumber]bool{}
	for _, mem := range n.members {
		d.member(at, mem, m, seen)
	}
}

func (d *decoder) member(at location, mem member, m protoreflect.Message, seen map[protoreflect.FieldNumber]bool) {
	fd := known(m.Descriptor(), mem.name)
	if fd == nil {
		d.note(UnknownField, at.child(mem.name), mem.offset, "unknown field, ignored"+suggestion(m.Descriptor(), mem.name))
		return
	}
	here := at.name(fd, mem.name)
	if seen[fd.Number()] {
		d.refuse(here, mem.offset, duplicate(here))
		return
	}
	seen[fd.Number()] = true
	d.remember(here, fd, mem.name)
	d.offsets[here.canonical] = mem.value.offset
	if mem.value.kind != null {
		d.field(here, fd, mem.value, m)
	}
}

func known(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if fd := md.Fields().ByJSONName(name); fd != nil {
		return fd
	}
	return md.Fields().ByTextName(name)
}

// suggestion helps with a name that is wrong in case or underscores only.
func suggestion(md protoreflect.MessageDescriptor, name string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for i := range md.Fields().Len() {
		if fd := md.Fields().Get(i); plain(string(fd.Name())) == plain(name) {
			return fmt.Sprintf("; did you mean %s?", fd.Name())
		}
	}
	return ""
}

func (d *decoder) field(at location, fd protoreflect.FieldDescriptor, n *node, m protoreflect.Message) {
	switch {
	case fd.IsMap():
		d.entries(at, fd, n, m.Mutable(fd).Map())
	case fd.IsList():
		d.items(at, fd, n, m.Mutable(fd).List())
	case fd.Message() != nil:
		d.message(at, n, m.Mutable(fd).Message())
	default:
		if v, ok := d.scalar(at, fd, n); ok {
			m.Set(fd, v)
		}
	}
}

func (d *decoder) entries(at location, fd protoreflect.FieldDescriptor, n *node, m protoreflect.Map) {
	if n.kind != object {
		d.wrongType(at, fd, n, "an object")
		return
	}
	for _, mem := range n.members {
		here, key := at.key(mem.name), protoreflect.ValueOfString(mem.name).MapKey()
		d.offsets[here.canonical] = mem.offset
		if m.Has(key) {
			d.refuse(here, mem.offset, duplicate(here))
			continue
		}
		if fd.MapValue().Message() != nil {
			v := m.NewValue()
			m.Set(key, v)
			d.message(here, mem.value, v.Message())
			continue
		}
		if v, ok := d.scalar(here, fd.MapValue(), mem.value); ok {
			m.Set(key, v)
		}
	}
}

func (d *decoder) items(at location, fd protoreflect.FieldDescriptor, n *node, l protoreflect.List) {
	if n.kind != array {
		d.wrongType(at, fd, n, "an array")
		return
	}
	for i, item := range n.items {
		here := at.index(i)
		d.offsets[here.canonical] = item.offset
		if v, ok := d.scalar(here, fd, item); ok {
			l.Append(v)
		}
	}
}
