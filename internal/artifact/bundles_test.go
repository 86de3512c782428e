package artifact

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// bundleOf is a bundle with one artifact.
func bundleOf(t *testing.T, content []byte, url string, key ed25519.PrivateKey) string {
	t.Helper()
	one := bundle.ArtifactSpec{Name: "kubelet", Version: "1.2.3", URLs: []string{url}, Content: bundle.Content{
		Local: true, Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}}
	var out bytes.Buffer
	if _, err := bundle.Create(t.Context(), bundle.Spec{Platform: "linux/" + runtime.GOARCH, Artifacts: []bundle.ArtifactSpec{one}}, nil, key, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A bundle takes the place of the network, never that of a promised digest.
func TestBundle(t *testing.T) {
	content, other := []byte("KUBELET"), sumOf([]byte("other"))
	const url = "https://files.example/kubelet"
	public, private, _ := ed25519.GenerateKey(nil)
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	trusted := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	for name, tc := range map[string]struct {
		a      desired.Artifact
		list   string
		key    ed25519.PrivateKey
		trust  bool
		strict bool
		want   any // nil is success
	}{
		"by URL":                   {a: desired.Artifact{URLs: []string{url}}},
		"with its digest":          {a: desired.Artifact{URLs: []string{url + "#sha256=" + sumOf(content)}}},
		"by version, without URL":  {a: desired.Artifact{Version: "1.2.3"}},
		"in place of plain http":   {a: desired.Artifact{Version: "1.2.3", URLs: []string{"http://files.example/kubelet"}}},
		"where digests are wanted": {a: desired.Artifact{URLs: []string{url}}, strict: true},
		"signed":                   {a: desired.Artifact{URLs: []string{url}}, key: private, trust: true},
		"not signed":               {a: desired.Artifact{URLs: []string{url}}, trust: true, want: new(*bundle.UnsignedError)},
		"URL has another digest":   {a: desired.Artifact{URLs: []string{url + "#sha256=" + other}}, want: new(*DigestError)},
		"document has another":     {a: desired.Artifact{URLs: []string{url}, SHA256: other}, want: new(*DigestError)},
		"list has another":         {a: desired.Artifact{URLs: []string{url}}, list: other, want: new(*DigestError)},
		"by name alone":            {a: desired.Artifact{}},
		"another version":          {a: desired.Artifact{Version: "1.2.4"}, want: new(*AbsentError)},
	} {
		t.Run(name, func(t *testing.T) {
			m := memory.New()
			m.Put(BundleDir+"/site.bundle", bundleOf(t, content, url, tc.key), 0o600)
			if tc.trust {
				m.Put(bundle.KeyDir+"/site.pem", trusted, 0o644)
			}
			if tc.list != "" {
				m.Put(DigestDir+"/a.json", `{"`+url+`": "`+tc.list+`"}`, 0o644)
			}
			tc.a.Name, tc.a.Files = "kubelet", kubelet("").Files
			got, err := New(Options{RequireDigests: tc.strict}).Stage(t.Context(), m, &tc.a)
			if tc.want != nil {
				if !errors.As(err, tc.want) {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if staged, _ := m.ReadFile(temp); err != nil || got.Unverified || !bytes.Equal(staged, content) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// Another build of the same version in a bundle is passed over.
func TestBundleWithAnotherBuild(t *testing.T) {
	content := []byte("KUBELET")
	s := newSite(t, always(content))
	m := memory.New()
	m.Put(BundleDir+"/site.bundle", bundleOf(t, []byte("OTHER"), "https://files.example/other", nil), 0o600)
	a := kubelet("", s.tls.URL+"#sha256="+sumOf(content))
	a.Version = "1.2.3"
	got, err := s.fetcher(Options{}).Stage(t.Context(), m, a)
	if err != nil || got.URL != s.tls.URL || s.hits.Load() != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A bundle that was put there and can't be read is no reason to ask the network.
func TestBrokenBundle(t *testing.T) {
	s := newSite(t, always(nil))
	m := memory.New()
	m.Put(BundleDir+"/site.bundle", "rubbish", 0o600)
	f := s.fetcher(Options{})
	a := kubelet("", s.tls.URL)
	if _, err := f.Stage(t.Context(), m, a); !errors.As(err, new(*bundle.NotBundleError)) || s.hits.Load() > 0 {
		t.Errorf("after %d requests: %v", s.hits.Load(), err)
	}
	if !f.Has(m, a) {
		t.Error("it offers nothing")
	}
	if images, err := Images(m); !errors.As(err, new(*bundle.NotBundleError)) {
		t.Errorf("images %v, %v", images, err)
	}
}
