package bundle

import (
	"crypto/ed25519"
	"fmt"
	"io"
)

// maxKey bounds the files of keys, in bytes.
const maxKey = 64 << 10

// readKey reads the file of a key, or the beginning of what is none.
func readKey(name string) ([]byte, error) {
	f, _, err := OpenRegular(name)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return text, nil
}

// ReadPrivateKey reads the ed25519 key in a file (PEM, PKCS#8), to sign with; nil where no file
// is named. One that holds none is a *KeyError.
func ReadPrivateKey(name string) (ed25519.PrivateKey, error) {
	if name == "" {
		return nil, nil
	}
	text, err := readKey(name)
	if err != nil {
		return nil, err
	}
	key, err := ParsePrivateKey(text)
	if err != nil {
		return nil, &KeyError{File: name, Err: err}
	}
	return key, nil
}

// ReadPublicKeys reads the keys in files (PEM), to trust. One that holds none is a *KeyError.
func ReadPublicKeys(files []string) ([]ed25519.PublicKey, error) {
	var all []ed25519.PublicKey
	for _, name := range files {
		text, err := readKey(name)
		if err != nil {
			return nil, err
		}
		keys, err := ParsePublicKeys(text)
		if err != nil {
			return nil, &KeyError{File: name, Err: err}
		}
		all = append(all, keys...)
	}
	return all, nil
}
