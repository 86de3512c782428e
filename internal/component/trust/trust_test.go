package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func certificate(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestResources(t *testing.T) {
	a, b := certificate(t), certificate(t)
	limited := []byte(strings.ReplaceAll(string(a), " CERTIFICATE", " TRUSTED CERTIFICATE"))
	rs, err := Resources("ca", [][]byte{append([]byte("a comment\n"), a...), slices.Concat(a, b), limited})
	if err != nil {
		t.Fatal(err)
	}
	st := golden.State(t, rs)
	for id, want := range map[string]string{"ca-0": string(a), "ca-1-1": string(b), "ca-2": string(limited)} {
		if got, ok := st.Lookup(desired.TrustAnchorID(id)).(*desired.TrustAnchor); !ok || got.PEM != want {
			t.Errorf("%s: %v", id, got)
		}
	}
	if len(rs) != 3 {
		t.Errorf("%d certificates, want 3: one stands twice", len(rs))
	}
}

func TestBadCertificates(t *testing.T) {
	for name, bundle := range map[string]string{
		"empty": "", "no PEM": "hello", "a key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	} {
		if _, err := Resources("ca", [][]byte{[]byte(bundle)}); err == nil || !strings.Contains(err.Error(), "certificate 0") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzResources(f *testing.F) {
	f.Add(certificate(f))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, bundle []byte) {
		rs, err := Resources("ca", [][]byte{bundle})
		if err != nil {
			return
		}
		golden.State(t, rs)
	})
}
