package decode

import (
	"fmt"
	"net/url"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/internal/desired"
)

func secret(fd protoreflect.FieldDescriptor) bool {
	return fd.Options().(*descriptorpb.FieldOptions).GetDebugRedact()
}

// longest is how much of a value an error shows.
const longest = 64

// shown is a value fit for an error: secrets redacted, URLs without user and query
// (where keys of storage accounts are), long values cut.
func shown(fd protoreflect.FieldDescriptor, value string) string {
	if secret(fd) {
		return desired.Redact([]byte(value))
	}
	return plain(value)
}

// plain is a value that is no secret, without those that may be in it.
func plain(value string) string {
	if strings.Contains(value, "://") {
		value = withoutCredentials(value)
	}
	return cut(withoutUser(value))
}

// withoutUser drops what may be a password from a URL whose scheme is missing or
// wrong, and a query, where keys of storage accounts are. The @ of a digest
// comes after no user.
func withoutUser(value string) string {
	if i := strings.IndexByte(value, '?'); i >= 0 && strings.Contains(value[i:], "=") {
		value = value[:i]
	}
	at := strings.LastIndexByte(value, '@')
	if at >= 0 && strings.HasPrefix(value[at:], "@sha256:") {
		at = strings.LastIndexByte(value[:at], '@')
	}
	if at < 0 {
		return value
	}
	return "…" + value[at:]
}

func cut(value string) string {
	if len(value) > longest {
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(value[:longest], ""), len(value))
	}
	return value
}

func withoutCredentials(value string) string {
	u, err := url.Parse(value)
	if err != nil {
		return desired.Redact([]byte(value))
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

func shownNode(fd protoreflect.FieldDescriptor, n *node) any {
	switch n.kind {
	case text, number:
		return shown(fd, n.text)
	case boolean:
		return n.truth
	}
	return field.OmitValueType{}
}
