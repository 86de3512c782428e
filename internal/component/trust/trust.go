// Package trust adds certificates to the machine's trust store.
package trust

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/internal/desired"
)

// trusted is the type of a certificate that says what it is trusted for: OpenSSL
// reads it, others pass over it.
const trusted = "TRUSTED CERTIFICATE"

// Resources are the certificates of each bundle, in the order given. A bundle is
// PEM with one certificate or more; anything else in it is an error. A
// certificate that stands twice is added once.
func Resources(prefix string, bundles [][]byte) ([]desired.Resource, error) {
	var out []desired.Resource
	seen := map[string]bool{}
	for i, bundle := range bundles {
		certs, err := split(bundle)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", i, err)
		}
		for j, c := range certs {
			if seen[c] {
				continue
			}
			seen[c] = true
			name := fmt.Sprintf("%s-%d", prefix, i)
			if j > 0 {
				name += fmt.Sprintf("-%d", j)
			}
			out = append(out, &desired.TrustAnchor{Name: name, PEM: c})
		}
	}
	return out, nil
}

// split takes a bundle apart; each certificate is written anew, so that text
// around it does not reach the machine.
func split(bundle []byte) ([]string, error) {
	var out []string
	for {
		block, rest := pem.Decode(bundle)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" && block.Type != trusted {
			return nil, fmt.Errorf("a %s among certificates", block.Type)
		}
		var b bytes.Buffer
		if err := pem.Encode(&b, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, fmt.Errorf("write certificate: %w", err)
		}
		out, bundle = append(out, b.String()), rest
	}
	if len(out) == 0 {
		return nil, errors.New("no PEM certificate in it")
	}
	return out, nil
}
