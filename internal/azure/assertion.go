package azure

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// assertionLife is how long a proof is good for.
const assertionLife = 5 * time.Minute

// assertion is the proof of an application that has a certificate: the text is PEM
// with the certificate and its RSA key.
//
// Source: learn.microsoft.com/entra/identity-platform/certificate-credentials.
func assertion(text []byte, client, endpoint string, now time.Time) (string, error) {
	certificate, key, err := pairIn(text)
	if err != nil {
		return "", err
	}
	thumbprint := sha256.Sum256(certificate)
	head, err := part(map[string]any{"alg": "PS256", "typ": "JWT", "x5t#S256": base64.RawURLEncoding.EncodeToString(thumbprint[:])})
	if err != nil {
		return "", err
	}
	body, err := part(map[string]any{
		"aud": endpoint, "iss": client, "sub": client, "jti": rand.Text(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(head + "." + body))
	signature, err := rsa.SignPSS(rand.Reader, key, crypto.SHA256, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return head + "." + body + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func part(v any) (string, error) {
	b, err := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(b), err
}

// pairIn reads the first certificate and the key of a PEM text.
func pairIn(text []byte) (certificate []byte, key *rsa.PrivateKey, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "CERTIFICATE" && certificate == nil:
			certificate = block.Bytes
		case block.Type != "CERTIFICATE" && key == nil:
			if key, err = rsaKey(block); err != nil {
				return nil, nil, err
			}
		}
	}
	if certificate == nil || key == nil {
		return nil, nil, errors.New("expected PEM with a certificate and its RSA key")
	}
	known, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate: %w", err)
	}
	if !key.PublicKey.Equal(known.PublicKey) {
		return nil, nil, errors.New("the key is not the certificate's")
	}
	return certificate, key, nil
}

func rsaKey(block *pem.Block) (*rsa.PrivateKey, error) {
	if block.Type == "RSA PRIVATE KEY" {
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	key, ok := any.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("expected an RSA key: Microsoft Entra ID takes no other")
	}
	return key, nil
}
