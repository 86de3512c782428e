// Package pki makes the lab cluster's certificates.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime of everything that a lab issues: labs are short.
const lifetime = 7 * 24 * time.Hour

// Pair is a certificate and its key, both PEM.
type Pair struct{ Cert, Key []byte }

// CA issues certificates.
type CA struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// NewCA makes a self-signed authority.
func NewCA(name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate CA key: %w", err)
	}
	t := template(pkix.Name{CommonName: name})
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign
	return newCA(t, key)
}

func newCA(t *x509.Certificate, key *ecdsa.PrivateKey) (*CA, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse CA: %w", err)
	}
	keyPEM, err := KeyPEM(key)
	if err != nil {
		return nil, err
	}
	return &CA{Pair{CertPEM(der), keyPEM}, cert, key}, nil
}

// Server issues a serving certificate for names and addresses.
func (ca *CA) Server(cn string, names []string, ips ...net.IP) (Pair, error) {
	t := template(pkix.Name{CommonName: cn})
	t.DNSNames, t.IPAddresses = names, ips
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return ca.issue(t)
}

// Client issues a client certificate for a user and its groups.
func (ca *CA) Client(cn string, groups ...string) (Pair, error) {
	t := template(pkix.Name{CommonName: cn, Organization: groups})
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return ca.issue(t)
}

func (ca *CA) issue(t *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generate key of %s: %w", t.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, ca.cert, key.Public(), ca.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate of %s: %w", t.Subject.CommonName, err)
	}
	keyPEM, err := KeyPEM(key)
	return Pair{CertPEM(der), keyPEM}, err
}

func template(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(fmt.Sprintf("read random serial: %v", err))
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// CertPEM encodes a certificate.
func CertPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// KeyPEM encodes a private key as SEC 1.
func KeyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// SigningPair is a key pair for service account tokens: Cert holds the public key.
func SigningPair() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("generate signing key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("encode public key: %w", err)
	}
	keyPEM, err := KeyPEM(key)
	return Pair{pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), keyPEM}, err
}
