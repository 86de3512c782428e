// Package reconcile keeps a machine as the document in one Secret says. It decides
// when what is asked of the engine: a new document, what somebody changed, all of
// it now and then. It goes by the machine as it is, and remembers only what the
// machine does not show.
package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	core "k8s.io/api/core/v1"
)

// What a Secret with a document holds, as published.
const (
	DataKey            = "osc.yaml"
	ChecksumAnnotation = "checksum/data-script"
	SerialAnnotation   = "reconciliation.osc.node-agent.gardener.cloud/serial"
)

// Document is what a Secret asks for.
type Document struct {
	Text []byte
	// Sum is the text's sha256.
	Sum string
	// Checksum is what the Secret's annotation says, which is what the cluster waits
	// for on the Node; without one, Sum.
	Checksum string
	// Serial: the machines of the pool take it one after another.
	Serial bool
}

// Of reads the document of a Secret.
func Of(s *core.Secret) (*Document, error) {
	text := s.Data[DataKey]
	if len(text) == 0 {
		return nil, fmt.Errorf("secret %s/%s has no %s", s.Namespace, s.Name, DataKey)
	}
	d := DocumentOf(text)
	d.Serial = s.Annotations[SerialAnnotation] == "true"
	if sum := s.Annotations[ChecksumAnnotation]; sum != "" {
		d.Checksum = sum
	}
	return d, nil
}

// DocumentOf is a document of which only the text is known.
func DocumentOf(text []byte) *Document {
	sum := sha256.Sum256(text)
	d := &Document{Text: text, Sum: hex.EncodeToString(sum[:])}
	d.Checksum = d.Sum
	return d
}

// same says whether two documents ask for the same and are called the same.
func (d *Document) same(o *Document) bool {
	return d != nil && o != nil && d.Sum == o.Sum && d.Checksum == o.Checksum
}
