// Package v1alpha1 has the types of the OperatingSystemConfig contract
// (extensions.gardener.cloud/v1alpha1): what a cluster manager wants of its nodes.
// A Secret holds it as YAML. docs/contracts/operatingsystemconfig.md says what
// berth makes of each field.
package v1alpha1

// What a document of this contract says of itself.
const (
	APIVersion = "extensions.gardener.cloud/v1alpha1"
	Kind       = "OperatingSystemConfig"
)
