package decode

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

func str(f func(string) string) check {
	return func(v protoreflect.Value) string { return f(v.String()) }
}

// unless answers what was expected where ok is false.
func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

func pattern(expr, want string) check {
	re := lazyregexp.New(expr)
	return str(func(s string) string { return unless(re().MatchString(s), "expected "+want) })
}

func oneOf(values ...string) check {
	want := "expected one of: " + strings.Join(values, ", ")
	return str(func(s string) string { return unless(slices.Contains(values, s), want) })
}

func atLeast(low int64) check {
	return func(v protoreflect.Value) string {
		return unless(v.Int() >= low, fmt.Sprintf("expected %d or more", low))
	}
}

func upTo(high int64) check { return within(0, high) }

func within(low, high int64) check {
	return func(v protoreflect.Value) string {
		return unless(v.Int() >= low && v.Int() <= high, fmt.Sprintf("expected %d to %d", low, high))
	}
}

// finite: JSON has no other numbers.
func finite(v protoreflect.Value) string {
	f := v.Float()
	return unless(!math.IsNaN(f) && !math.IsInf(f, 0), "expected a finite number")
}

// notState: containerd does not start with one directory for both.
func notState(s string) string {
	if s == "/run/containerd" {
		return "expected another directory than containerd's for state"
	}
	return pathName(s)
}

// pathName: to the kernel a name ends at its first NUL.
func pathName(s string) string { return unless(!strings.Contains(s, "\x00"), "expected a path") }

func oneLine(s string) string {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\t' }
	return unless(!strings.ContainsFunc(s, control), "expected one line, without control characters")
}

// duration is Go's, as metav1.Duration reads it.
func duration(s string) string {
	_, err := time.ParseDuration(s)
	return unless(err == nil, `expected a duration, e.g. "30s" or "1m30s"`)
}

var semantic = lazyregexp.New(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

func kubernetesVersion(s string) string {
	return unless(semantic().MatchString(s), `expected a version x.y.z, e.g. "1.34.2"`)
}

// packaged is a version of a program, with what a distribution adds to it.
var packaged = lazyregexp.New(`^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-+~.][0-9A-Za-z.+~-]+)?$`)

func programVersion(s string) string {
	return unless(packaged().MatchString(s), `expected a version, e.g. "2.2.1"`)
}

// jsonMaybeBase64: the published documentation says base64, one of its readers wants plain JSON.
func jsonMaybeBase64(s string) string {
	if decoded, err := decodeBase64(s); err == nil {
		s = string(decoded)
	}
	return unless(json.Valid([]byte(s)), "expected a JSON document, base64 or as it is")
}
