package bundle

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
)

// writer writes the members of a bundle.
type writer struct {
	ctx context.Context
	out io.Writer
}

// bundle writes all members. What was spooled is dropped as soon as it is
// written, so that the room is not needed twice.
func (w *writer) bundle(m *Manifest, signer ed25519.PrivateKey, c *collection) error {
	if err := w.head(m, signer); err != nil {
		return err
	}
	for _, b := range m.Blobs {
		if err := w.blob(b, c.get(b.Digest[len("sha256:"):])); err != nil {
			return err
		}
	}
	_, err := w.out.Write(make([]byte, tail))
	return err
}

// head writes what stands before the blobs.
func (w *writer) head(m *Manifest, signer ed25519.PrivateKey) error {
	raw, err := m.encode()
	if err != nil {
		return err
	}
	if len(raw) > maxManifest {
		return &SpecError{fmt.Sprintf("its manifest would have %d bytes, more than %d", len(raw), maxManifest)}
	}
	members := []struct {
		name    string
		content func() ([]byte, error)
	}{
		{ManifestName, func() ([]byte, error) { return raw, nil }},
		{SignatureName, func() ([]byte, error) { return sign(raw, signer) }},
		{layoutName, layoutFile},
		{indexName, m.indexFile},
	}
	for _, member := range members {
		if member.name == SignatureName && signer == nil {
			continue
		}
		content, err := member.content()
		if err != nil {
			return err
		}
		if err := w.member(member.name, int64(len(content)), bytes.NewReader(content)); err != nil {
			return err
		}
	}
	return nil
}

// blob writes content and compares it with what was read before.
func (w *writer) blob(b Blob, s *stored) error {
	in, err := s.open(w.ctx)
	if err != nil {
		return fmt.Errorf("open blob %s again: %w", b.Digest, err)
	}
	defer in.Close()
	sum := &meter{sum: sha256.New()}
	if err := w.member(memberName(b.Digest), b.Size, io.TeeReader(io.LimitReader(in, b.Size+1), sum)); err != nil {
		return err
	}
	if got := sum.hex(); got != s.sum {
		return &ContentError{What: "blob", Want: s.sum, Got: got, Source: "reading it before: its file changed meanwhile"}
	}
	return s.free()
}

func (w *writer) member(name string, size int64, content io.Reader) error {
	head, err := header(name, size)
	if err != nil {
		return err
	}
	if _, err := w.out.Write(head); err != nil {
		return err
	}
	n, err := io.CopyBuffer(w.out, &interruptible{w.ctx, content}, make([]byte, copySize))
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("%s has other than %d bytes: its file changed meanwhile", name, size)
	}
	_, err = w.out.Write(make([]byte, padded(size)-size))
	return err
}
