package apiserver

import (
	"crypto/x509"
	"errors"
	"net/http"
)

// ErrNoCertificate is the error for a CA text without any certificate.
var ErrNoCertificate = errors.New("CA holds no certificate")

// roots parses a CA bundle; an empty one means the machine's own roots.
func roots(ca []byte) (*x509.CertPool, error) {
	if len(ca) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, ErrNoCertificate
	}
	return pool, nil
}

// distrust says whether an error is about the server's certificate, which
// no further try changes.
func distrust(err error) bool {
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	plain := errors.Is(err, http.ErrSchemeMismatch)
	return authority || invalid || name || plain
}
