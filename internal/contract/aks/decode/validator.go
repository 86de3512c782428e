package decode

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// Validate finds every fault of a configuration. Paths are spelled as in the .proto files; secrets are redacted.
func Validate(cfg *aksnodeconfigv1.Configuration) field.ErrorList {
	v := validator{}
	v.configuration(cfg)
	var out field.ErrorList
	for _, f := range v.faults {
		out = append(out, f.err)
	}
	return out
}

type validator struct {
	spelling spelling
	// failed are places whose value could not be read: that is said already.
	failed map[string]bool
	faults []fault
}

func (v *validator) configuration(cfg *aksnodeconfigv1.Configuration) {
	m := cfg.ProtoReflect()
	v.required(cfg)
	v.message(location{}, m)
	for _, rule := range crossRules {
		rule(v, cfg)
	}
}

// message applies the rule of each field that is set. A scalar with its zero value is not set.
func (v *validator) message(at location, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); m.Has(fd) {
			v.field(v.spelling.of(at, fd), fd, m.Get(fd))
		}
	}
}

func (v *validator) field(at location, fd protoreflect.FieldDescriptor, value protoreflect.Value) {
	switch {
	case fd.IsMap():
		v.entries(at, fd, value.Map())
	case fd.IsList():
		for i := range value.List().Len() {
			v.check(at.index(i), fd, value.List().Get(i), ruleOf(fd).value)
		}
	case fd.Message() != nil:
		v.message(at, value.Message())
	case fd.Kind() == protoreflect.StringKind && value.String() == "": // how the contract says "not set"
	default:
		v.check(at, fd, value, ruleOf(fd).value)
	}
}

func (v *validator) entries(at location, fd protoreflect.FieldDescriptor, m protoreflect.Map) {
	r := ruleOf(fd)
	for _, k := range sortedKeys(m) {
		here, value := at.key(k), m.Get(protoreflect.ValueOfString(k).MapKey())
		v.check(here, fd, protoreflect.ValueOfString(k), r.key)
		if fd.MapValue().Message() != nil {
			v.message(here, value.Message())
			continue
		}
		v.check(here, fd, value, r.value)
		if r.entry != nil {
			v.complain(here, fd, value, r.entry(k, value.String()))
		}
	}
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

func (v *validator) check(at location, fd protoreflect.FieldDescriptor, value protoreflect.Value, c check) {
	if c != nil {
		v.complain(at, fd, value, c(value))
	}
}

func (v *validator) complain(at location, fd protoreflect.FieldDescriptor, value protoreflect.Value, want string) {
	if want == "" {
		return
	}
	bad := value.Interface()
	if s, isText := bad.(string); isText {
		bad = shown(fd, s)
	}
	v.faults = append(v.faults, fault{location: at, err: field.Invalid(at.path, bad, want)})
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
