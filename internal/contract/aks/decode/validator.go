package decode

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// Validate finds every error of a configuration. Paths are spelled as in the .proto files; secrets are redacted.
func Validate(cfg *aksnodeconfigv1.Configuration) field.ErrorList {
	v := validator{}
	v.configuration(proto.CloneOf(cfg))
	var out field.ErrorList
	for _, f := range v.errs {
		out = append(out, f.err)
	}
	return out
}

// validator gives every value of a configuration the form in which it counts, and checks it.
type validator struct {
	cfg      *aksnodeconfigv1.Configuration
	spelling spelling
	// failed are locations whose value could not be read: that is said already.
	failed map[string]bool
	// keys are the names that keys of maps have in the document, by the location that they have now.
	keys  map[string]string
	errs  []fieldError
	notes []remark
}

// remark is a note that has no position yet.
type remark struct {
	location location
	detail   string
}

func (v *validator) configuration(cfg *aksnodeconfigv1.Configuration) {
	v.cfg, v.keys = cfg, map[string]string{}
	m := cfg.ProtoReflect()
	v.flagNames(m)
	v.message(location{}, m)
	v.required(cfg)
	for _, rule := range crossRules {
		rule(v, cfg)
	}
}

// flagNames come first: what else is read depends on kubelet's flags.
func (v *validator) flagNames(m protoreflect.Message) {
	at, fd, flags := v.at(m, flagsPath)
	if flags.Map().Len() > 0 {
		v.rename(at, fd, flags.Map())
	}
}

// message applies the rule of each field that is set and read. A scalar with its zero value is not set.
func (v *validator) message(at location, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		here := v.spelling.of(at, fd)
		if on := features[here.canonical]; m.Has(fd) && (on == nil || on(v.cfg)) {
			v.field(here, fd, m)
		}
	}
}

func (v *validator) field(at location, fd protoreflect.FieldDescriptor, m protoreflect.Message) {
	value := m.Get(fd)
	switch {
	case fd.IsMap():
		v.entries(at, fd, value.Map())
	case fd.IsList():
		v.items(at, fd, value.List())
	case fd.Message() != nil:
		v.message(at, value.Message())
	case fd.Kind() == protoreflect.StringKind && value.String() == "": // how the contract says "not set"
	default:
		m.Set(fd, v.value(at, fd, value))
	}
}

// items leaves out what is empty: nobody means it.
func (v *validator) items(at location, fd protoreflect.FieldDescriptor, l protoreflect.List) {
	kept := 0
	for i := range l.Len() {
		here, item := at.index(i), l.Get(i)
		if fd.Kind() == protoreflect.StringKind && strings.TrimSpace(item.String()) == "" {
			v.note(here, "it is empty and left out")
			continue
		}
		l.Set(kept, v.value(here, fd, item))
		kept++
	}
	l.Truncate(kept)
}

func (v *validator) entries(at location, fd protoreflect.FieldDescriptor, m protoreflect.Map) {
	v.rename(at, fd, m)
	r := ruleOf(fd)
	for _, k := range sortedKeys(m) {
		here, key := v.entry(at, k), protoreflect.ValueOfString(k).MapKey()
		if r.key != nil {
			v.complain(here, fd, protoreflect.ValueOfString(k), r.key(protoreflect.ValueOfString(k)))
		}
		if fd.MapValue().Message() != nil {
			v.message(here, m.Get(key).Message())
			continue
		}
		written := m.Get(key)
		value := v.value(here, fd, written)
		if r.readEntry != nil {
			value = v.text(here, value, func(s string) (string, string) { return r.readEntry(k, s) })
		}
		m.Set(key, value)
		if r.entry != nil && v.reads(fd, k) {
			v.complain(here, fd, written, r.entry(k, value.String()))
		}
	}
}

// reads: an image holds none of kubelet's flags but one.
func (v *validator) reads(fd protoreflect.FieldDescriptor, key string) bool {
	return fd.Name() != "kubelet_flags" || joins(v.cfg) || key == "--cgroup-driver"
}

// rename gives keys the form in which they count. Of two that are the same then, the last in the alphabet stays:
// kubelet is given its flags in that order.
func (v *validator) rename(at location, fd protoreflect.FieldDescriptor, m protoreflect.Map) {
	read := ruleOf(fd).readKey
	if read == nil {
		return
	}
	for _, k := range sortedKeys(m) {
		name, why := read(k)
		if why == "" {
			continue
		}
		from, to := protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString(name).MapKey()
		if m.Has(to) {
			v.note(v.entry(at, name), "it is there twice, and "+at.key(k).String()+" counts")
		}
		m.Set(to, m.Get(from))
		m.Clear(from)
		v.keys[at.key(name).canonical] = k
		v.note(at.key(k), why)
	}
}

// entry is where an entry of a map stands in the document.
func (v *validator) entry(at location, key string) location {
	if spelled, ok := v.keys[at.key(key).canonical]; ok {
		return at.key(spelled)
	}
	return at.key(key)
}

func sortedKeys(m protoreflect.Map) []string {
	var out []string
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		out = append(out, k.String())
		return true
	})
	slices.Sort(out)
	return out
}

// value is what counts of a single one.
func (v *validator) value(at location, fd protoreflect.FieldDescriptor, value protoreflect.Value) protoreflect.Value {
	r, written := ruleOf(fd), value
	if r.read != nil {
		value = v.text(at, value, r.read)
	}
	if r.number != nil {
		n, why := r.number(value.Int())
		v.noteIf(at, why)
		value = protoreflect.ValueOfInt32(int32(n))
	}
	if r.value != nil && (r.read == nil || value.String() != "") {
		v.complain(at, fd, written, r.value(value))
	}
	return value
}

func (v *validator) text(at location, value protoreflect.Value, read reading) protoreflect.Value {
	s, why := read(value.String())
	v.noteIf(at, why)
	return protoreflect.ValueOfString(s)
}

func (v *validator) noteIf(at location, why string) {
	if why != "" {
		v.note(at, why)
	}
}

func (v *validator) note(at location, detail string) { v.notes = append(v.notes, remark{at, detail}) }

func (v *validator) complain(at location, fd protoreflect.FieldDescriptor, value protoreflect.Value, want string) {
	if want == "" {
		return
	}
	bad := value.Interface()
	if s, isText := bad.(string); isText {
		bad = shown(fd, s)
	}
	v.errs = append(v.errs, fieldError{location: at, err: field.Invalid(at.path, bad, want)})
}

// at is the location of a field by its path in the names of the .proto, and the value there.
func (v *validator) at(m protoreflect.Message, path string) (location, protoreflect.FieldDescriptor, protoreflect.Value) {
	at := location{}
	names := strings.Split(path, ".")
	for i, name := range names {
		fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
		at = v.spelling.of(at, fd)
		if i == len(names)-1 {
			return at, fd, m.Get(fd)
		}
		m = m.Get(fd).Message()
	}
	panic("empty path")
}

// unread says whether the value at a location, or one around it, could not be read.
func (v *validator) unread(canonical string) bool {
	for ; canonical != ""; canonical = parent(canonical) {
		if v.failed[canonical] {
			return true
		}
	}
	return v.failed[""]
}
