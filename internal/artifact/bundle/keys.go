package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/paths"
)

// KeyDir holds the public keys that a machine trusts, in files *.pem. A machine
// with any key there takes only bundles that one of them signed.
const KeyDir = paths.SettingsDir + "/keys.d"

// FileReader reads a machine's files; host.FS is one.
type FileReader interface {
	ReadDir(path string) ([]string, error)
	ReadFile(path string) ([]byte, error)
}

// TrustedKeys reads the keys of KeyDir; none where it does not exist. A file
// that can't be read is an error: a machine must not trust more because one of
// its keys is broken.
func TrustedKeys(r FileReader) ([]ed25519.PublicKey, error) {
	names, err := r.ReadDir(KeyDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read trusted keys: %w", err)
	}
	var all []ed25519.PublicKey
	for _, name := range names {
		if path.Ext(name) != ".pem" {
			continue
		}
		text, err := r.ReadFile(path.Join(KeyDir, name))
		if err != nil {
			return nil, fmt.Errorf("read trusted key: %w", err)
		}
		keys, err := ParsePublicKeys(text)
		if err != nil {
			return nil, &KeyError{path.Join(KeyDir, name), err}
		}
		all = append(all, keys...)
	}
	return all, nil
}

// ParsePublicKeys reads one or more ed25519 keys: PEM blocks "PUBLIC KEY" (PKIX),
// as openssl pkey -pubout writes them.
func ParsePublicKeys(text []byte) ([]ed25519.PublicKey, error) {
	var keys []ed25519.PublicKey
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("a PEM block is a %s, want PUBLIC KEY", block.Type)
		}
		any, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		key, ok := any.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("a key of type %T, want ed25519", any)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("no PEM block PUBLIC KEY in it")
	}
	return keys, nil
}

// ParsePrivateKey reads an ed25519 key: one PEM block "PRIVATE KEY" (PKCS#8), as
// openssl genpkey -algorithm ed25519 writes it.
func ParsePrivateKey(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("no PEM block PRIVATE KEY in it")
	case block.Type == "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("it is encrypted; decrypt it first: openssl pkey -in FILE")
	case block.Type != "PRIVATE KEY":
		return nil, fmt.Errorf("a PEM block is a %s, want PRIVATE KEY", block.Type)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := any.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T, want ed25519", any)
	}
	return key, nil
}

// KeyID names a public key: the sha256 of its PKIX form, in hex.
func KeyID(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "" // an ed25519 key always has a PKIX form
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// KeyError is a file that is no key.
type KeyError struct {
	File string
	Err  error
}

// Error names the file.
func (e *KeyError) Error() string { return fmt.Sprintf("key %s: %v", e.File, e.Err) }

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// ExitCode implements exitcode.Coded.
func (*KeyError) ExitCode() int { return exitcode.Digest }

// Hint says how a key is made.
func (*KeyError) Hint() string {
	return "Make a key pair: openssl genpkey -algorithm ed25519 -out bundle.key; openssl pkey -in bundle.key -pubout -out bundle.pem"
}
