package decode

import (
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// scalar reads a single value. It answers false where there is none: after an error,
// or for an enum value of a newer contract.
func (d *decoder) scalar(at location, fd protoreflect.FieldDescriptor, n *node) (protoreflect.Value, bool) {
	switch fd.Kind() {
	case protoreflect.StringKind:
		if n.kind == text {
			return protoreflect.ValueOfString(n.text), true
		}
		d.wrongType(at, fd, n, "a string")
	case protoreflect.BoolKind:
		if n.kind == boolean {
			return protoreflect.ValueOfBool(n.truth), true
		}
		d.wrongType(at, fd, n, "true or false")
	case protoreflect.Int32Kind:
		return d.integer(at, fd, n)
	case protoreflect.DoubleKind:
		return d.double(at, fd, n)
	case protoreflect.EnumKind:
		return d.enum(at, fd, n)
	default:
		panic("aksnodeconfig: no reader for " + fd.Kind().String()) // a test reads every field of the contract
	}
	return protoreflect.Value{}, false
}

var jsonNumber = lazyregexp.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// numeral returns a number as written: bare, or in a string as protobuf's JSON form permits.
func numeral(n *node) (string, bool) {
	return n.text, n.kind == number || n.kind == text && jsonNumber().MatchString(n.text)
}

func (d *decoder) integer(at location, fd protoreflect.FieldDescriptor, n *node) (protoreflect.Value, bool) {
	s, ok := numeral(n)
	if !ok {
		d.wrongType(at, fd, n, "an integer")
		return protoreflect.Value{}, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
		d.refuse(at, n.offset, field.TypeInvalid(at.path, shown(fd, s), "expected an integer of 32 bits"))
		return protoreflect.Value{}, false
	}
	return protoreflect.ValueOfInt32(int32(f)), true
}

var notFinite = map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}

func (d *decoder) double(at location, fd protoreflect.FieldDescriptor, n *node) (protoreflect.Value, bool) {
	if f, ok := notFinite[n.text]; ok && n.kind == text {
		return protoreflect.ValueOfFloat64(f), true
	}
	s, ok := numeral(n)
	if !ok {
		d.wrongType(at, fd, n, "a number")
		return protoreflect.Value{}, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		d.refuse(at, n.offset, field.TypeInvalid(at.path, shown(fd, s), "expected a number of 64 bits"))
	}
	return protoreflect.ValueOfFloat64(f), err == nil
}

// mustKnow are the enums where ignoring a new value would make a node that can't work.
var mustKnow = map[protoreflect.Name]bool{"NetworkPlugin": true}

func (d *decoder) enum(at location, fd protoreflect.FieldDescriptor, n *node) (protoreflect.Value, bool) {
	values := fd.Enum().Values()
	switch n.kind {
	case text:
		if v := values.ByName(protoreflect.Name(n.text)); v != nil {
			return protoreflect.ValueOfEnum(v.Number()), true
		}
		d.unknownValue(at, fd, n)
		return protoreflect.Value{}, false
	case number:
		v, ok := d.integer(at, fd, n)
		if !ok {
			return v, false
		}
		number := protoreflect.EnumNumber(v.Int())
		if values.ByNumber(number) == nil {
			d.unknownValue(at, fd, n)
			return protoreflect.Value{}, false
		}
		return protoreflect.ValueOfEnum(number), true
	}
	d.wrongType(at, fd, n, "a name of "+string(fd.Enum().Name()))
	return protoreflect.Value{}, false
}

func (d *decoder) unknownValue(at location, fd protoreflect.FieldDescriptor, n *node) {
	if mustKnow[fd.Enum().Name()] {
		d.refuse(at, n.offset, field.NotSupported(at.path, n.text, names(fd.Enum())))
		return
	}
	d.note(UnknownValue, at.path, n.offset, fmt.Sprintf("unknown value %q of %s, counts as not set", n.text, fd.Enum().Name()))
}

func names(ed protoreflect.EnumDescriptor) []string {
	var out []string
	for i := range ed.Values().Len() {
		out = append(out, string(ed.Values().Get(i).Name()))
	}
	return out
}
