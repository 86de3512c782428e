// Package yamltext writes YAML.
package yamltext

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Marshal is a value as YAML, by the rules of encoding/json.
func Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return FromJSON(b)
}

// FromJSON is JSON as YAML. Strings keep each character: the library reads JSON as YAML, in
// which some that JSON may have as they are must be escaped, and some break lines.
func FromJSON(b []byte) ([]byte, error) {
	var escaped bytes.Buffer
	for _, r := range string(b) {
		if mustEscape(r) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteRune(r)
		}
	}
	return yaml.JSONToYAML(escaped.Bytes())
}

// mustEscape is of characters that stand in JSON's strings alone. See YAML 1.1, 5.1 and 5.4.
func mustEscape(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' || r == '\ufffe' || r == '\uffff'
}
