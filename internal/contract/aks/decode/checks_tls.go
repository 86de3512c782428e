package decode

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
)

// certificates: base64 of PEM that holds certificates and nothing else. A key among them is a
// mistake that would end in a world-readable file.
func certificates(s string) string {
	blocks, want := pemBlocks(s)
	if want != "" {
		return want
	}
	for i, b := range blocks {
		if b.Type != "CERTIFICATE" {
			return fmt.Sprintf("expected certificates, PEM block %d is %s", i+1, b.Type)
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil {
			return fmt.Sprintf("PEM block %d is no certificate: %v", i+1, err)
		}
	}
	return ""
}

func privateKey(s string) string {
	blocks, want := pemBlocks(s)
	if want != "" {
		return want
	}
	for _, b := range blocks {
		if readableKey(b.Bytes) {
			return ""
		}
	}
	return "expected a private key: PKCS #8, PKCS #1 or SEC 1, not encrypted"
}

func readableKey(der []byte) bool {
	_, err8 := x509.ParsePKCS8PrivateKey(der)
	_, err1 := x509.ParsePKCS1PrivateKey(der)
	_, errEC := x509.ParseECPrivateKey(der)
	return err8 == nil || err1 == nil || errEC == nil
}

func pemBlocks(s string) ([]*pem.Block, string) {
	rest, err := decodeBase64(s)
	if err != nil {
		return nil, "expected base64 of PEM: the base64 is damaged"
	}
	var out []*pem.Block
	for {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		out = append(out, b)
	}
	return out, unless(len(out) > 0, "expected base64 of PEM: there is no PEM block in it")
}

// pair answers "" where certificate and key belong together. Both must be readable.
func pair(cert, key string) string {
	certPEM, _ := decodeBase64(cert)
	keyPEM, _ := decodeBase64(key)
	_, err := tls.X509KeyPair(certPEM, keyPEM)
	return unless(err == nil, "the key does not belong to this certificate")
}

func cipherSuite(s string) string {
	has := func(suites []*tls.CipherSuite) bool {
		return slices.ContainsFunc(suites, func(c *tls.CipherSuite) bool { return c.Name == s })
	}
	return unless(has(tls.CipherSuites()) || has(tls.InsecureCipherSuites()),
		"expected the name of a TLS cipher suite, e.g. TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
}
