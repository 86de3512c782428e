package identity

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// servingLife is the published validity of the self-signed serving certificate;
// servingMargin is how much of it must be left.
const (
	servingLife   = 7300 * 24 * time.Hour
	servingMargin = 30 * 24 * time.Hour
)

// SelfSigned makes the key pair with which kubelet serves where no controller
// signs one: ECDSA P-256, valid for 7300 days from an hour before now (clocks
// differ), for the names: DNS names and IP addresses. Both results are PEM.
func SelfSigned(names []string, now time.Time) (certPEM, keyPEM []byte, err error) {
	if len(names) == 0 {
		return nil, nil, errors.New("serving certificate: no names")
	}
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template, err := servingTemplate(names, now)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign serving certificate: %w", err)
	}
	keyPEM, err = encodeKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}), keyPEM, err
}

func servingTemplate(names []string, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	from := now.UTC().Add(-time.Hour)
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: names[0]},
		NotBefore:             from,
		NotAfter:              from.Add(servingLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
			continue
		}
		t.DNSNames = append(t.DNSNames, name)
	}
	return t, nil
}

// ServingValid says whether a serving pair fits together, is good for all names
// and has at least 30 days left; if not, the reason says why.
func ServingValid(certPEM, keyPEM []byte, names []string, now time.Time) (ok bool, reason string) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return false, "certificate and key: " + err.Error()
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return false, "certificate: " + err.Error()
	}
	for _, name := range names {
		if err := leaf.VerifyHostname(bracketed(name)); err != nil {
			return false, fmt.Sprintf("certificate is not for %s", name)
		}
	}
	reason = validityProblem(leaf, now, servingMargin)
	return reason == "", reason
}

// bracketed gives an IP address the form in which VerifyHostname takes it for
// one.
func bracketed(name string) string {
	if net.ParseIP(name) != nil {
		return "[" + name + "]"
	}
	return name
}
