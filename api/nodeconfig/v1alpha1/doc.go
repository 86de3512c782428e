// Package v1alpha1 has the types of the NodeConfig contract (berth.dev/v1alpha1):
// what the operator of a machine wants of it as a node of a cluster. A file holds
// it as YAML or JSON. docs/contracts/node.md says what berth makes of each field,
// and schema.json is its JSON Schema.
//
// A secret is named by a file or a variable of the environment. It stands in the
// document itself only where allowInline says so.
package v1alpha1

// What a document of this contract says of itself.
const (
	APIVersion = "berth.dev/v1alpha1"
	Kind       = "NodeConfig"
)
