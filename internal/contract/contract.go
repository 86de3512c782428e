package contract

import (
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/aks"
	"github.com/berth-dev/berth/internal/desired"
)

// Contract is a document that is decoded and valid.
type Contract interface {
	Kind() Kind
	// Notes are what was tolerated in the document, by path.
	Notes() []desired.FieldNote
	// Translate returns the sealed state that the document asks for on a machine
	// with these facts.
	Translate(component.Facts) (*desired.State, error)
	// Terms are what TermsOf says of it.
	Terms() Terms
}

// Terms are what the run itself must know of a document.
type Terms = aks.Terms

// TermsOf reads the terms of a document before it is decoded, and even though it
// may be refused. What can't be read has its default.
func TermsOf(data []byte) Terms { return aks.TermsOf(data) }

// Decode finds out which contract a document is, decodes and validates it. An
// error means that the document is refused: *aks.DocumentError,
// *osc.DocumentError or *node.DocumentError with every error, *UnknownKindError or
// *UnreadableError.
func Decode(data []byte) (Contract, error) {
	k, err := Detect(data)
	if err != nil {
		return nil, err
	}
	return DecodeAs(k, data)
}

// DecodeAs is Decode of a document that is to be of a kind.
func DecodeAs(k Kind, data []byte) (Contract, error) {
	switch k {
	case AKS:
		return decodeAKS(data)
	case OperatingSystemConfig:
		return decodeOSC(data)
	case NodeConfig:
		return decodeNode(data)
	}
	return nil, &UnknownKindError{Kind: string(k)}
}
