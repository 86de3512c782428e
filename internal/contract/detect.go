// Package contract finds out which contract a document is and gives the rest of
// berth one view of all of them.
package contract

import (
	"bytes"
	"encoding/json"

	"sigs.k8s.io/yaml"
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

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b)
}

// Detect says which contract a document, JSON or YAML, is. One without
// apiVersion and kind is the AKS contract, and so is one that can't be read at
// all: that contract's decoder says what is wrong, and where.
func Detect(data []byte) (Kind, error) {
	m, err := typeMeta(data)
	switch {
	case err != nil, m.APIVersion == "" && m.Kind == "":
		return AKS, nil //nolint:nilerr // see above
	case m.APIVersion == "extensions.gardener.cloud/v1alpha1" && m.Kind == "OperatingSystemConfig":
		return OperatingSystemConfig, nil
	case m.Kind == "NodeConfig":
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
	return m, yaml.Unmarshal(data, &m)
}

func isJSON(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n")
	return len(t) == 0 || t[0] == '{' || t[0] == '['
}
