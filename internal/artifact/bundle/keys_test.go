package bundle

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

func pemOf(t *testing.T, kind string, key any) string {
	t.Helper()
	marshal := x509.MarshalPKIXPublicKey
	if strings.HasSuffix(kind, "PRIVATE KEY") {
		marshal = x509.MarshalPKCS8PrivateKey
	}
	der, err := marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestParseKeys(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one, two := pemOf(t, "PUBLIC KEY", public(testKey(1))), pemOf(t, "PUBLIC KEY", public(testKey(2)))
	if keys, err := ParsePublicKeys([]byte("a note\n" + one + two)); err != nil || len(keys) != 2 || !keys[1].Equal(public(testKey(2))) {
		t.Error(err)
	}
	private := pemOf(t, "PRIVATE KEY", testKey(1))
	if key, err := ParsePrivateKey([]byte(private)); err != nil || !key.Equal(testKey(1)) {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"": "no PEM block", private: "is a PRIVATE KEY", pemOf(t, "PUBLIC KEY", other.Public()): "want ed25519",
		"-----BEGIN PUBLIC KEY-----\neHg=\n-----END PUBLIC KEY-----\n": "asn1",
	} {
		if _, err := ParsePublicKeys([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for text, want := range map[string]string{
		"": "no PEM block", one: "is a PUBLIC KEY", pemOf(t, "PRIVATE KEY", other): "want ed25519", pemOf(t, "ENCRYPTED PRIVATE KEY", testKey(1)): "is encrypted",
	} {
		if _, err := ParsePrivateKey([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzPublicKeys(f *testing.F) {
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\neHg=\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if keys, err := ParsePublicKeys(text); err == nil && len(keys) == 0 {
			t.Error("no key and no error")
		}
	})
}

// machineFiles is a machine's files in memory.
type machineFiles fstest.MapFS

func (m machineFiles) ReadDir(p string) ([]string, error) {
	var names []string
	for name := range m {
		if path.Dir("/"+name) == p {
			names = append(names, path.Base(name))
		}
	}
	if names == nil {
		return nil, fs.ErrNotExist
	}
	return names, nil
}

func (m machineFiles) ReadFile(p string) ([]byte, error) { return fs.ReadFile(fstest.MapFS(m), p[1:]) }

func TestTrustedKeys(t *testing.T) {
	key := &fstest.MapFile{Data: []byte(pemOf(t, "PUBLIC KEY", public(testKey(1))))}
	if keys, err := TrustedKeys(machineFiles{}); err != nil || keys != nil {
		t.Error(err)
	}
	keys, err := TrustedKeys(machineFiles{"etc/berth/keys.d/a.pem": key, "etc/berth/keys.d/README": {Data: []byte("x")}})
	if err != nil || len(keys) != 1 {
		t.Error(err)
	}
	var broken *KeyError
	if _, err := TrustedKeys(machineFiles{"etc/berth/keys.d/a.pem": key, "etc/berth/keys.d/b.pem": {Data: []byte("x")}}); !errors.As(err, &broken) || broken.File != KeyDir+"/b.pem" {
		t.Error(err)
	}
}
