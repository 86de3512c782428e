// Package contract finds out which contract a document is and gives the rest of
// berth one view of all of them.
package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"sigs.k8s.io/yaml"

	node "github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	osc "github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
)

// Kind names a contract.
type Kind string

// The contracts.
const (
	AKS                   Kind = "aksnodeconfig.v1.Configuration"
	OperatingSystemConfig Kind = "extensions.gardener.cloud/v1alpha1 OperatingSystemConfig"
	NodeConfig            Kind = "NodeConfig"
)

// UnknownKindError is a document of a kind that no contract has.
type UnknownKindError struct{ APIVersion, Kind string }

// Error names the kind.
func (e *UnknownKindError) Error() string {
	return "no contract is of apiVersion " + quoted(e.APIVersion) + " and kind " + quoted(e.Kind)
}

// UnreadableError is a document that says its kind and is no YAML.
type UnreadableError struct{ Err error }

// Error says where it can't be read.
func (e *UnreadableError) Error() string { return "the document can't be read: " + e.Err.Error() }

// Unwrap returns what the reader of YAML said.
func (e *UnreadableError) Unwrap() error { return e.Err }

// Doing says what failed.
func (*UnreadableError) Doing() string { return "read the configuration" }

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b)
}

// Detect says which contract a document, JSON or YAML, is. One without
// apiVersion and kind is the AKS contract, and so is one that can't be read and says
// neither: that contract's decoder says what is wrong, and where.
func Detect(data []byte) (Kind, error) {
	m, err := typeMeta(data)
	switch {
	case err != nil && !isJSON(data) && saysKind(data):
		return "", &UnreadableError{errors.Unwrap(err)} // without how the reader goes about it
	case err != nil, m.APIVersion == "" && m.Kind == "":
		return AKS, nil //nolint:nilerr // see above
	case m.APIVersion == osc.APIVersion && m.Kind == osc.Kind:
		return OperatingSystemConfig, nil
	case m.Kind == node.Kind:
		return NodeConfig, nil
	}
	return "", &UnknownKindError{m.APIVersion, m.Kind}
}

type meta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// typeMeta reads the two keys alone; JSON is not taken through YAML, which is
// slower by far.
func typeMeta(data []byte) (meta, error) {
	var m meta
	if isJSON(data) {
		return m, json.Unmarshal(data, &m)
	}
	if m, ok := metaOfLines(data); ok {
		return m, nil
	}
	return m, yaml.Unmarshal(data, &m)
}

// metaOfLines finds the two keys in lines of their own, as nearly every document has
// them at its beginning: to read a large one as a whole takes longer than to apply it. What
// is spelled in another way is left to a reader of all of YAML.
func metaOfLines(data []byte) (m meta, ok bool) {
	for rest := data; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		goesOn := len(rest) == 0 || rest[0] == ' '
		switch text := string(line); {
		case text == "apiVersion: "+osc.APIVersion && !goesOn, text == "apiVersion: "+node.APIVersion && !goesOn:
			_, m.APIVersion, _ = strings.Cut(text, " ")
		case text == "kind: "+osc.Kind && !goesOn, text == "kind: "+node.Kind && !goesOn:
			_, m.Kind, _ = strings.Cut(text, " ")
		case text != "" && !isOrdinary(text[0]):
			return m, false
		}
		if m.APIVersion != "" && m.Kind != "" {
			return m, true
		}
	}
	return m, false
}

// saysKind says whether a line begins with one of the two keys.
func saysKind(data []byte) bool {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("apiVersion:")) || bytes.HasPrefix(line, []byte("kind:")) {
			return true
		}
	}
	return false
}

// isOrdinary says whether a line of block style may begin with a byte: a key, what is
// below one, or a remark.
func isOrdinary(c byte) bool {
	return c == ' ' || c == '#' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func isJSON(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n")
	return len(t) == 0 || t[0] == '{' || t[0] == '['
}
