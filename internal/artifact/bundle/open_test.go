package bundle

import (
	"bytes"
	"io"
	"testing"
)

// FuzzOpen: whatever the file holds, Open ends, and what it opens can be read
// and verified without a panic.
func FuzzOpen(f *testing.F) {
	var b bytes.Buffer
	spec := Spec{Platform: "linux/amd64", Artifacts: []ArtifactSpec{{Name: "x", URLs: []string{"https://e.x/y"}, Content: content("text", true)}}}
	if _, err := Create(f.Context(), spec, nil, testKey(1), &b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := Open(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		if _, err := o.Verify(t.Context(), nil); err != nil {
			return
		}
		for _, blob := range o.Manifest().Blobs {
			if s, err := o.Blob(blob.Digest); err != nil || s.Size() != blob.Size {
				t.Errorf("%s: %v", blob.Digest, err)
			}
		}
	})
}

// FuzzManifest: a manifest that is taken is spelled as it would be written.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version": 1}`))
	f.Add([]byte(`{
  "version": 1,
  "platform": "linux/amd64",
  "artifacts": [],
  "images": [],
  "blobs": []
}
`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := decodeManifest(raw)
		if err != nil {
			return
		}
		if again, err := m.encode(); err != nil || !bytes.Equal(again, raw) {
			t.Errorf("%v: %s", err, again)
		}
	})
}

// sparse is a file of one huge member whose content nobody made.
type sparse struct {
	head, tail []byte
	gap        int64
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		switch at := off + int64(i); {
		case at < int64(len(s.head)):
			p[i] = s.head[at]
		case at < int64(len(s.head))+s.gap:
			p[i] = 0
		case at-int64(len(s.head))-s.gap < int64(len(s.tail)):
			p[i] = s.tail[at-int64(len(s.head))-s.gap]
		default:
			return i, io.EOF
		}
	}
	return len(p), nil
}

// TestLargeMembers: above 8 GiB a header has another form, and no blob is read.
func TestLargeMembers(t *testing.T) {
	const size = maxPlain + 513
	d := sum([]byte("not read"))
	m := &Manifest{Version: 1, Platform: "linux/amd64", Images: []Image{}, Blobs: []Blob{{"sha256:" + d, size}},
		Artifacts: []Artifact{{Name: "x", URLs: []string{}, SHA256: d, Size: size, Path: memberName(d)}}}
	var b bytes.Buffer
	w := &writer{t.Context(), &b}
	if err := w.head(m, nil); err != nil {
		t.Fatal(err)
	}
	h, err := header(memberName(d), size)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(h)
	s := &sparse{head: b.Bytes(), gap: padded(size), tail: make([]byte, tail)}
	o, err := Open(s, int64(len(s.head))+s.gap+tail)
	if err != nil {
		t.Fatal(err)
	}
	if blob, err := o.Blob(d); err != nil || blob.Size() != size {
		t.Error(err)
	}
}
