// Package aks turns the AKS contract (aksnodeconfig.v1.Configuration as JSON) into desired state.
package aks

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
)

// The door of the contract. It is a package of its own because clients link it; see there.
type (
	Document      = decode.Document
	DocumentError = decode.DocumentError
	Fault         = decode.Fault
	Note          = decode.Note
)

// Decode reads and validates a configuration. Its error is a *DocumentError with every fault.
func Decode(data []byte) (*Document, error) { return decode.Decode(data) }

// Validate finds every fault of a configuration; paths are spelled as in the .proto files.
func Validate(cfg *aksnodeconfigv1.Configuration) field.ErrorList { return decode.Validate(cfg) }
