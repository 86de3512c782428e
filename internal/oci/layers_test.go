package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// tarText makes a layer of lines: "path = content", "path -> symlink target",
// "path => hard link target", "path/", "path %" (a device).
func tarText(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for line := range strings.Lines(text) {
		h, content := entryOf(strings.TrimSpace(line))
		if h.Name == "" {
			continue
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func entryOf(line string) (*tar.Header, string) {
	if name, target, ok := strings.Cut(line, " -> "); ok {
		return &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}, ""
	}
	if name, target, ok := strings.Cut(line, " => "); ok {
		return &tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target, Mode: 0o755}, ""
	}
	if name, ok := strings.CutSuffix(line, " %"); ok {
		return &tar.Header{Name: name, Typeflag: tar.TypeChar, Mode: 0o600}, ""
	}
	if strings.HasSuffix(line, "/") {
		return &tar.Header{Name: line, Typeflag: tar.TypeDir, Mode: 0o755}, ""
	}
	name, content, _ := strings.Cut(line, " = ")
	return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}, content
}

func gzipOf(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstdOf(t testing.TB, plain []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(plain, nil)
}

// heldImage is an image in memory that counts how often its layers are opened.
type heldImage struct {
	Image
	opened []int
}

func hold(layers ...[]byte) *heldImage {
	h := &heldImage{opened: make([]int, len(layers))}
	at := map[digest.Digest][]int{}
	for n, content := range layers {
		d := digest.FromBytes(content)
		at[d] = append(at[d], n)
		h.Layers = append(h.Layers, v1.Descriptor{Digest: d, Size: int64(len(content))})
	}
	h.Open = func(_ context.Context, l v1.Descriptor) (io.ReadCloser, error) {
		n := at[l.Digest][0]
		h.opened[n]++
		return io.NopCloser(bytes.NewReader(layers[n])), nil
	}
	return h
}

// extract returns what was put, by the path that was asked for.
func (h *heldImage) extract(ctx context.Context, wanted ...string) (map[string]string, error) {
	got := map[string]string{}
	err := h.Extract(ctx, wanted, func(paths []string, header *tar.Header, in io.Reader) error {
		content, err := io.ReadAll(in)
		if int64(len(content)) != header.Size && err == nil {
			err = io.ErrShortBuffer
		}
		for _, p := range paths {
			got[p] += string(content)
		}
		return err
	})
	return got, err
}
