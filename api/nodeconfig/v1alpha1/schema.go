package v1alpha1

import _ "embed"

// Schema is the JSON Schema (2020-12) of a document of this contract. It is
// generated from the types. It takes what berth takes, but for fields that are there
// and empty; what depends on two fields, or on the machine, only berth refuses.
//
//go:embed schema.json
var Schema []byte
