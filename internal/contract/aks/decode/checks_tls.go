package decode

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
)

// The types of PEM blocks that OpenSSL reads certificates from. The second is an old name of the first; the third
// holds what the certificate is trusted for besides.
const (
	certificateType = "CERTIFICATE"
	oldType         = "X509 CERTIFICATE"
	trustedType     = "TRUSTED CERTIFICATE"
)

// onlyCertificates leaves out what is none: a key among them would end in a world-readable file.
func onlyCertificates(s string) (string, string) {
	var out bytes.Buffer
	changed := false
	blocks, _ := pemBlocks(s)
	for _, b := range blocks {
		switch b.Type {
		case certificateType, trustedType:
		case oldType:
			b.Type, changed = certificateType, true
		default:
			changed = true
			continue
		}
		_ = pem.Encode(&out, &pem.Block{Type: b.Type, Bytes: b.Bytes})
	}
	compact := strings.Join(strings.Fields(s), "")
	switch {
	case changed && out.Len() > 0:
		return base64.StdEncoding.EncodeToString(out.Bytes()), "of its PEM blocks only the certificates count"
	case strings.ContainsAny(s, " \t") && len(blocks) > 0:
		return compact, "blanks in base64 do not count"
	}
	return s, ""
}

// clientCAs are read by Go in kubelet.
func clientCAs(s string) string {
	return certificates(s, func(b *pem.Block) error {
		if b.Type != certificateType {
			return fmt.Errorf("kubelet passes over a %s", b.Type)
		}
		_, err := x509.ParseCertificate(b.Bytes)
		return err
	})
}

// anchors are read by OpenSSL, for which a certificate is well-formed ASN.1.
func anchors(s string) string {
	return certificates(s, func(b *pem.Block) error {
		var c struct {
			TBS, Algorithm asn1.RawValue
			Signature      asn1.BitString
		}
		rest, err := asn1.Unmarshal(b.Bytes, &c)
		if err == nil && len(rest) > 0 && b.Type != trustedType {
			return fmt.Errorf("%d bytes after its end", len(rest))
		}
		return err
	})
}

func certificates(s string, read func(*pem.Block) error) string {
	blocks, want := pemBlocks(s)
	if want != "" {
		return want
	}
	for i, b := range blocks {
		if !strings.HasSuffix(b.Type, certificateType) {
			return fmt.Sprintf("expected certificates, PEM block %d is %s", i+1, b.Type)
		}
		if err := read(b); err != nil {
			return fmt.Sprintf("PEM block %d is no certificate: %v", i+1, err)
		}
	}
	return ""
}

// clientCertificate: kubelet passes over other blocks than certificates; the first is its own.
func clientCertificate(s string) string {
	blocks, want := pemBlocks(s)
	if want != "" {
		return want
	}
	i := slices.IndexFunc(blocks, func(b *pem.Block) bool { return b.Type == certificateType })
	if i < 0 {
		return "expected a certificate, PEM block 1 is " + blocks[0].Type
	}
	if _, err := x509.ParseCertificate(blocks[i].Bytes); err != nil {
		return fmt.Sprintf("PEM block %d is no certificate: %v", i+1, err)
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

// noPrivateKey is for a file that everybody on the machine may read.
func noPrivateKey(s string) string {
	blocks, _ := pemBlocks(s)
	secret := func(b *pem.Block) bool { return strings.HasSuffix(b.Type, "PRIVATE KEY") }
	return unless(!slices.ContainsFunc(blocks, secret), "expected no private key: the file is for everybody to read")
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

// oldSuites are the names that two suites had before they were named as IANA does; kubelet knows both.
var oldSuites = []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"}

func cipherSuite(s string) string {
	has := func(suites []*tls.CipherSuite) bool {
		return slices.ContainsFunc(suites, func(c *tls.CipherSuite) bool { return c.Name == s })
	}
	return unless(has(tls.CipherSuites()) || has(tls.InsecureCipherSuites()) || slices.Contains(oldSuites, s),
		"expected the name of a TLS cipher suite, e.g. TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
}
