package lab

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/berth-dev/berth/lab/internal/pki"
)

// AwaitSigner returns when the cluster signs certificate requests: a controller
// manager that has just started takes some seconds to.
func (l *Lab) AwaitSigner(ctx context.Context) error {
	request, err := probeRequest()
	if err != nil {
		return err
	}
	csrs := l.client.CertificatesV1().CertificateSigningRequests()
	csr, err := csrs.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "lab-probe-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("probe the signer: %w", err)
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Probe"}}
	if _, err := csrs.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("probe the signer: %w", err)
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		got, err := csrs.Get(ctx, csr.Name, metav1.GetOptions{})
		return err == nil && len(got.Status.Certificate) > 0, err
	})
}

func probeRequest() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "lab-probe"}}, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Reissue signs a client certificate (PEM) once more, for the same name, groups and
// key, with another lifetime: the cluster's own signer gives none below ten minutes.
func (l *Lab) Reissue(certificate []byte, from, until time.Time) ([]byte, error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return nil, errors.New("reissue a certificate: no PEM block")
	}
	old, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reissue a certificate: %w", err)
	}
	return l.sign(&x509.Certificate{
		SerialNumber: old.SerialNumber, Subject: old.Subject, NotBefore: from, NotAfter: until,
		KeyUsage: old.KeyUsage, ExtKeyUsage: old.ExtKeyUsage,
	}, old.PublicKey)
}

// Issue makes a client certificate of the cluster for an hour, with its key; both PEM.
func (l *Lab) Issue(name string, groups ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if key, err = pki.KeyPEM(private); err != nil {
		return nil, nil, err
	}
	now := time.Now()
	certificate, err = l.sign(&x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, private.Public())
	return certificate, key, err
}

// sign makes a certificate (PEM) with the cluster's CA.
func (l *Lab) sign(template *x509.Certificate, of crypto.PublicKey) ([]byte, error) {
	dir := filepath.Join(l.plane.Dir, "pki")
	ca, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, of, ca.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return pki.CertPEM(der), nil
}
