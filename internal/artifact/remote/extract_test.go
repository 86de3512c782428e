package remote

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/oci"
)

// layerOf is a layer of one file.
func layerOf(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))})
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err := errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestExtractFromRegistry is the whole way from a reference to a file.
func TestExtractFromRegistry(t *testing.T) {
	r := newRegistry(t)
	r.auth = "token"
	r.addIndex("v1", r.addImage("", "linux/amd64", layerOf(t, "bin/bash", "bash"), layerOf(t, "usr/bin/kubelet", "k")))
	client := r.client()
	content, err := client.Resolve(t.Context(), r.ref(":v1"))
	if err != nil {
		t.Fatal(err)
	}
	im := &oci.Image{Layers: content.Layers, Open: func(ctx context.Context, l v1.Descriptor) (io.ReadCloser, error) {
		in, _, err := client.Blob(ctx, r.ref(":v1"), l, 0)
		return in, err
	}}
	got := map[string]string{}
	put := func(paths []string, _ *tar.Header, in io.Reader) error {
		raw, err := io.ReadAll(in)
		got[paths[0]] = string(raw)
		return err
	}
	if err := im.Extract(t.Context(), []string{"/usr/bin/kubelet", "/bin/bash"}, put); err != nil || got["/usr/bin/kubelet"] != "k" || got["/bin/bash"] != "bash" {
		t.Errorf("%v, %v", got, err)
	}
	corrupt(r.blobs)
	if err := im.Extract(t.Context(), []string{"/bin/bash"}, put); !errors.As(err, new(*oci.DigestError)) {
		t.Errorf("corrupt: %v", err)
	}
}
