package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// pairProblem says why a client certificate with its key does not serve a subject
// at a time, with margin to spare; "" if it does. Both are PEM.
func pairProblem(certificate, key []byte, who *subject, now time.Time, margin time.Duration) string {
	if len(certificate) == 0 || len(key) == 0 {
		return "no client certificate"
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return "certificate and key: " + err.Error()
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return "certificate: " + err.Error()
	}
	if leaf.Subject.CommonName != who.user {
		return fmt.Sprintf("certificate is for %q, not for %q", leaf.Subject.CommonName, who.user)
	}
	if !slices.Contains(leaf.Subject.Organization, who.group) {
		return fmt.Sprintf("certificate is not for group %q", who.group)
	}
	return validityProblem(leaf, now, margin)
}

// validityProblem says why a certificate is not valid now, or not for long enough.
func validityProblem(leaf *x509.Certificate, now time.Time, margin time.Duration) string {
	left := leaf.NotAfter.Sub(now)
	switch {
	case now.Before(leaf.NotBefore):
		return fmt.Sprintf("certificate is valid from %s and the clock says %s", rfc3339(leaf.NotBefore), rfc3339(now))
	case left <= 0:
		return fmt.Sprintf("certificate expired at %s, %s ago", rfc3339(leaf.NotAfter), (-left).Round(time.Second))
	case left < margin:
		return fmt.Sprintf("certificate expires at %s, in %s", rfc3339(leaf.NotAfter), left.Round(time.Second))
	}
	return ""
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// certificates returns the parsable certificates of a PEM text.
func parseCertificates(text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all
		}
		if block.Type != certificateBlock {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
}

// overlap says whether two bundles share an authority: a rotation that adds one
// keeps the others.
func overlap(a, b []*x509.Certificate) bool {
	return slices.ContainsFunc(a, func(x *x509.Certificate) bool {
		return slices.ContainsFunc(b, func(y *x509.Certificate) bool {
			return bytes.Equal(x.RawSubjectPublicKeyInfo, y.RawSubjectPublicKeyInfo)
		})
	})
}
