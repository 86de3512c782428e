package contract

import (
	"fmt"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/aks"
	"github.com/berth-dev/berth/internal/desired"
)

// Contract is a document that passed its door.
type Contract interface {
	Kind() Kind
	// Notes are what was tolerated in the document, by path.
	Notes() []desired.FieldNote
	// Translate returns the sealed state that the document asks for on a machine
	// with these facts.
	Translate(component.Facts) (*desired.State, error)
	// Terms are what the run itself must know.
	Terms() Terms
}

// Terms are the parts of a contract that concern the run and not the machine.
type Terms struct {
	// Bake: prepare the machine for an image; it does not become a node.
	Bake bool
}

// UnhandledError is a contract that is known and not acted on.
type UnhandledError struct{ Kind Kind }

// Error names the contract.
func (e *UnhandledError) Error() string {
	return fmt.Sprintf("the document is a %s: %v", e.Kind, errNotYet)
}

// Decode finds out which contract a document is, decodes and validates it. An
// error means that the document is refused: *aks.DocumentError with every fault,
// *UnknownKindError or *UnhandledError.
func Decode(data []byte) (Contract, error) {
	k, err := Detect(data)
	if err != nil {
		return nil, err
	}
	if k != AKS {
		return nil, &UnhandledError{k}
	}
	doc, err := aks.Decode(data)
	if err != nil {
		return nil, err
	}
	return &aksContract{doc}, nil
}
