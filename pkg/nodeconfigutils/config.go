package nodeconfigutils

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
)

// Marshal writes a configuration as JSON: snake_case names, enums by name, two blanks of indentation,
// a line break at the end. The bytes depend on nothing but the configuration.
func Marshal(cfg *aksnodeconfigv1.Configuration) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("marshal configuration: %w", err)
	}
	// protojson varies its blanks from build to build.
	var plain, out bytes.Buffer
	if err := json.Compact(&plain, text); err != nil {
		return nil, fmt.Errorf("marshal configuration: %w", err)
	}
	if err := json.Indent(&out, plain.Bytes(), "", "  "); err != nil {
		return nil, fmt.Errorf("marshal configuration: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Unmarshal reads a configuration that may be incomplete; see Validate. Names may be snake_case or lowerCamel.
// Unknown fields and enum values are ignored. The error has a line for each reason: position, field path,
// what was expected.
func Unmarshal(data []byte) (*aksnodeconfigv1.Configuration, error) {
	doc, err := decode.Read(data)
	if err != nil {
		return nil, err
	}
	return doc.Config, nil
}

// Validate finds everything for which a node would refuse the configuration: what is missing, and values
// that can't be. Paths are spelled in snake_case; secrets are redacted.
func Validate(cfg *aksnodeconfigv1.Configuration) field.ErrorList {
	return decode.Validate(cfg)
}
