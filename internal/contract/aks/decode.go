// Package aks turns the AKS contract (aksnodeconfig.v1.Configuration as JSON) into desired state.
package aks

import "github.com/berth-dev/berth/internal/contract/aks/decode"

// Decoding and validation are a package of their own because clients link it: these are its types.
type (
	// Document is a decoded configuration.
	Document = decode.Document
	// DocumentError holds every error of a document that is refused.
	DocumentError = decode.DocumentError
	// FieldError is one of them.
	FieldError = decode.FieldError
	// Note is something that was tolerated.
	Note = decode.Note
)

// Decode reads and validates a configuration. Its error is a *DocumentError with every error.
func Decode(data []byte) (*Document, error) { return decode.Decode(data) }
