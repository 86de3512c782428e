package decode

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
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
	re := regexp.MustCompile(expr)
	return str(func(s string) string { return unless(re.MatchString(s), "expected "+want) })
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

func upTo(high int64) check {
	return func(v protoreflect.Value) string {
		return unless(v.Int() >= 0 && v.Int() <= high, fmt.Sprintf("expected 0 to %d", high))
	}
}

func finite(v protoreflect.Value) string {
	f := v.Float()
	return unless(f >= 0 && !math.IsInf(f, 1), "expected a finite number, 0 or more")
}

func oneLine(s string) string {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\t' }
	return unless(!strings.ContainsFunc(s, control), "expected one line, without control characters")
}

func absolute(s string) string {
	return unless(path.IsAbs(s) && oneLine(s) == "", "expected an absolute path")
}

// cleanPath is a path where berth keeps something.
func cleanPath(s string) string {
	return unless(absolute(s) == "" && path.Clean(s) == s && s != "/",
		"expected an absolute path, not /, without . and .. in it and a slash at its end")
}

// duration: Go's, and never negative.
func duration(s string) string {
	d, err := time.ParseDuration(s)
	return unless(err == nil && d >= 0, `expected a duration, e.g. "30s" or "1m30s"`)
}

var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

func kubernetesVersion(s string) string {
	return unless(semantic.MatchString(s), `expected a version x.y.z, e.g. "1.34.2", without a leading v`)
}

// packaged is a version of a program, with what a distribution adds to it.
var packaged = regexp.MustCompile(`^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-+~.][0-9A-Za-z.+~-]+)?$`)

func programVersion(s string) string {
	return unless(packaged.MatchString(s), `expected a version, e.g. "2.2.1"`)
}

// decodeBase64 reads what the base64 command reads: line breaks do not count.
func decodeBase64(s string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(s))
}

func base64Text(s string) string {
	_, err := decodeBase64(s)
	return unless(err == nil, "expected base64")
}

// jsonMaybeBase64: the published documentation says base64, one of its readers wants plain JSON.
func jsonMaybeBase64(s string) string {
	if decoded, err := decodeBase64(s); err == nil {
		s = string(decoded)
	}
	return unless(json.Valid([]byte(s)), "expected a JSON document, base64 or as it is")
}
