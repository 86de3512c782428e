package bundle

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
)

// signature is the content of the member SignatureName.
type signature struct {
	KeyID string `json:"keyID"`
	// Signature is ed25519 over the manifest's bytes; it prints in base64.
	Signature []byte `json:"signature"`
}

func sign(manifest []byte, key ed25519.PrivateKey) ([]byte, error) {
	public, _ := key.Public().(ed25519.PublicKey)
	return encodeJSON(signature{KeyID(public), ed25519.Sign(key, manifest)})
}

func decodeSignature(raw []byte) (*signature, error) {
	s := &signature{}
	err := json.Unmarshal(raw, s)
	if err != nil || !hexForm().MatchString(s.KeyID) || len(s.Signature) != ed25519.SignatureSize {
		return nil, &DamagedError{Member: SignatureName, Reason: "it is no signature"}
	}
	if again, err := encodeJSON(s); err != nil || !bytes.Equal(again, raw) {
		return nil, &DamagedError{Member: SignatureName, Reason: "it is not spelled as berth writes it"}
	}
	return s, nil
}

// Authenticate says whether one of the keys signed the manifest, and with it the
// digest of everything in the bundle; no blob is read. Without keys nothing is
// asked of the bundle. Errors: *UnsignedError, *UntrustedError, *SignatureError.
func (b *Bundle) Authenticate(keys []ed25519.PublicKey) error {
	if len(keys) == 0 {
		return nil
	}
	if b.signature == nil {
		return &UnsignedError{}
	}
	unknown := &UntrustedError{KeyID: b.signature.KeyID}
	for _, k := range keys {
		id := KeyID(k)
		if id != b.signature.KeyID {
			unknown.Trusted = append(unknown.Trusted, id)
			continue
		}
		if !ed25519.Verify(k, b.raw, b.signature.Signature) {
			return &SignatureError{id}
		}
		return nil
	}
	return unknown
}
