package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"errors"
	"io"
	"strings"
	"testing"
)

// entry is a member of a tar that a test takes apart.
type entry struct {
	header tar.Header
	text   []byte
}

func unpack(t *testing.T, raw []byte) []entry {
	t.Helper()
	var all []entry
	r := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{*h, text})
	}
}

// pack makes a tar as berth does, where the entries are as berth makes them.
func pack(t *testing.T, all []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range all {
		if e.header.Typeflag == tar.TypeReg {
			e.header.Size = int64(len(e.text))
		}
		if err := w.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name, text string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Format: tar.FormatUSTAR}, []byte(text)}
}

// at is the first member of a name, or of the first blob.
func at(all []entry, prefix string) *entry {
	for i := range all {
		if strings.HasPrefix(all[i].header.Name, prefix) {
			return &all[i]
		}
	}
	return nil
}

func TestPackIsFaithful(t *testing.T) {
	raw := create(t, sample(t), testKey(1))
	if !bytes.Equal(raw, pack(t, unpack(t, raw))) {
		t.Error("taken apart and put together it is another file")
	}
}

// TestOpenRefuses has every sort of change that needs no look at a blob.
func TestOpenRefuses(t *testing.T) {
	edit := func(old, now string) func([]entry) []entry {
		return func(all []entry) []entry {
			all[0].text = bytes.Replace(all[0].text, []byte(old), []byte(now), 1)
			return all
		}
	}
	cases := map[string]struct {
		change func([]entry) []entry
		want   string
	}{
		"blob removed":       {func(all []entry) []entry { return append(all[:5], all[6:]...) }, "in its place is"},
		"last removed":       {func(all []entry) []entry { return all[:len(all)-1] }, "it is missing: the archive ends before it"},
		"blob twice":         {func(all []entry) []entry { return append(all, all[5]) }, "is not in the manifest"},
		"blob shorter":       {func(all []entry) []entry { all[5].text = all[5].text[1:]; return all }, "bytes, want"},
		"stranger":           {func(all []entry) []entry { return append(all, file("x", "y")) }, `"x" is not in the manifest`},
		"traversal":          {func(all []entry) []entry { all[4].header.Name = "../../etc/passwd"; return all }, `in its place is "../../etc/passwd"`},
		"order":              {func(all []entry) []entry { all[4], all[5] = all[5], all[4]; return all }, "in its place is"},
		"index altered":      {func(all []entry) []entry { at(all, indexName).text[30]++; return all }, "index.json: it does not say what the manifest says"},
		"layout altered":     {func(all []entry) []entry { at(all, layoutName).text[30]++; return all }, "oci-layout: it does not say"},
		"no layout":          {func(all []entry) []entry { return append(all[:2], all[3:]...) }, "oci-layout"},
		"no signature, junk": {func(all []entry) []entry { at(all, SignatureName).text = []byte("{}"); return all }, "it is no signature"},
		"signature spelled":  {func(all []entry) []entry { e := at(all, SignatureName); e.text = append(e.text, ' '); return all }, "not spelled as berth writes it"},
		"huge signature":     {func(all []entry) []entry { at(all, SignatureName).text = make([]byte, 5000); return all }, "more than 4096"},
		"huge manifest":      {func(all []entry) []entry { all[0].text = make([]byte, maxManifest+1); return all }, "more than 8388608"},
		"no JSON":            {func(all []entry) []entry { all[0].text = []byte("x"); return all }, "is not JSON"},
		"newer":              {edit(`"version": 1,`, `"version": 2,`), "has version 2 of the format"},
		"manifest spelled":   {edit(`"version": 1,`, `"version": 1, `), "not spelled as berth writes it"},
		"key twice":          {edit(`"version": 1,`, `"version": 1, "version": 1,`), "not spelled as berth writes it"},
		"unknown key":        {edit(`"version": 1,`, `"version": 1, "more": 1,`), "not spelled as berth writes it"},
		"platform":           {edit("linux/amd64", "linux"), "not of the form os/arch"},
		"other path":         {edit("blobs/sha256/9", "../../sha256/9"), "is not that of its blob"},
		"other size":         {edit(`"size": 10`, `"size": 11`), "it has 11 bytes and its blob 10"},
		"negative size":      {edit(`"size": 697`, `"size": -1`), "it has -1 bytes"},
		"other digest":       {edit(`"sha256": "9`, `"sha256": "8`), "is none of the blobs"},
		"URL with user":      {edit("https://example.com/runc", "https://u@example.com/runc"), "is not one that an artifact can stand for"},
		"URLs unsorted":      {edit("https://example.com/k8s", "https://z.example/k8s"), "not in order"},
		"short reference":    {edit("registry.example/pause:3.10", "pause:3.10"), "the complete reference is docker.io/library/pause:3.10"},
		"no list":            {edit(`"images": [`, `"image": [`), "a list is missing"},
		"media type":         {edit("index.v1+json", "layer.v1.tar"), "no media type of an image"},
		"link": {func(all []entry) []entry {
			e := &all[4]
			e.header.Typeflag, e.header.Linkname, e.text = tar.TypeSymlink, "/etc", nil
			return all
		}, "no plain file (type '2')"},
		"executable": {func(all []entry) []entry { all[4].header.Mode = 0o755; return all }, "its header is not as berth writes it"},
		"owner":      {func(all []entry) []entry { all[4].header.Uid = 1; return all }, "its header is not as berth writes it"},
		"PAX": {func(all []entry) []entry {
			all[4].header.Format, all[4].header.PAXRecords = tar.FormatPAX, map[string]string{"BERTH.x": "y"}
			return all
		}, "in its place is"},
		"GNU":            {func(all []entry) []entry { all[4].header.Format = tar.FormatGNU; return all }, "its header is not as berth writes it"},
		"manifest moved": {func(all []entry) []entry { all[0], all[1] = all[1], all[0]; return all }, "a tar whose first member is"},
	}
	raw := create(t, sample(t), testKey(1))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			refused(t, pack(t, c.change(unpack(t, raw))), c.want)
		})
	}
}

func refused(t *testing.T, raw []byte, want string) {
	t.Helper()
	b, err := Open(bytes.NewReader(raw), int64(len(raw)))
	var damaged *DamagedError
	var other *NotBundleError
	var version *VersionError
	if b != nil || !errors.As(err, &damaged) && !errors.As(err, &other) && !errors.As(err, &version) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v (%T), want %s", err, err, want)
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	block := func(text string) string { return text + strings.Repeat("\x00", 1024) }
	for want, text := range map[string]string{
		"the file is empty": "", "only 3 bytes": "abc", "compressed with gzip": block("\x1f\x8b"), "compressed with zstd": block("\x28\xb5\x2f\xfd"),
		"zip archive": block("PK\x03\x04"), "a program": block("\x7fELF"), "a PEM file": block("-----BEGIN X"), "looks like JSON": block("{}"),
		"compressed with xz": block("\xfd7zXZ"), "it is no tar": block("hello"),
		`a tar whose first member is "x"`: string(pack(t, []entry{file("x", "y")})),
	} {
		refused(t, []byte(text), want)
	}
}

// TestOpenRefusesEveryCut has a file cut at each block, and some bytes more.
func TestOpenRefusesEveryCut(t *testing.T) {
	raw := create(t, sample(t), testKey(1))
	for n := 0; n < len(raw); n += 128 {
		if b, err := Open(bytes.NewReader(raw[:n]), int64(n)); err == nil || b != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	refused(t, raw[:len(raw)-1024-200], "the file ends in it")
	refused(t, append(append([]byte{}, raw...), 0), "1 bytes follow it")
	refused(t, append(append([]byte{}, raw...), raw...), "bytes follow it")
}

// TestEveryByteCounts turns each byte of a small bundle: none of them may go
// unnoticed.
func TestEveryByteCounts(t *testing.T) {
	keys := []ed25519.PublicKey{public(testKey(1))}
	spec := Spec{Platform: "linux/amd64", Artifacts: []ArtifactSpec{{Name: "x", URLs: []string{"https://e.x/y"}, Content: content("text", true)}}}
	raw := create(t, spec, testKey(1))
	for i := range raw {
		raw[i] ^= 0x20
		if b, err := Open(bytes.NewReader(raw), int64(len(raw))); err == nil {
			if _, err := b.Verify(t.Context(), keys); err == nil {
				t.Errorf("byte %d was turned and nobody noticed", i)
			}
		}
		raw[i] ^= 0x20
	}
}

func TestVerifyNamesAlteredBlobs(t *testing.T) {
	raw := create(t, sample(t), nil)
	turn := func(texts ...string) *Bundle {
		all := unpack(t, raw)
		for _, text := range texts {
			at(all, memberName(sum([]byte(text)))).text[0] ^= 1
		}
		return open(t, pack(t, all))
	}
	var altered *BlobError
	_, err := turn("runc").Verify(t.Context(), nil)
	if !errors.As(err, &altered) || altered.Digest != "sha256:"+sum([]byte("runc")) || len(altered.Of) != 1 || altered.Of[0] != "artifact runc" {
		t.Errorf("%v", err)
	}
	_, err = turn("kubernetes", "layer one").Verify(t.Context(), nil)
	if text := err.Error(); !strings.Contains(text, "artifact kubernetes") || !strings.Contains(text, "image "+pause) {
		t.Error(err)
	}
}

// forge makes a bundle of a manifest that is right in itself and wrong about
// its images.
func forge(t *testing.T, change func(*Manifest, *collection)) *Bundle {
	t.Helper()
	c := &collection{platform: "linux/amd64", spool: &memorySpool{t: t}, blobs: map[string]*stored{}}
	m, err := c.collect(t.Context(), sample(t))
	if err != nil {
		t.Fatal(err)
	}
	change(m, c)
	m.sort()
	var b bytes.Buffer
	if err := (&writer{t.Context(), &b}).bundle(m, nil, c); err != nil {
		t.Fatal(err)
	}
	return open(t, b.Bytes())
}

func TestVerifyWantsWholeImages(t *testing.T) {
	layer := "sha256:" + sum([]byte("layer two"))
	drop := func(digest string) func(*Manifest, *collection) {
		return func(m *Manifest, _ *collection) {
			for i, b := range m.Blobs {
				if b.Digest == digest {
					m.Blobs = append(m.Blobs[:i], m.Blobs[i+1:]...)
					return
				}
			}
		}
	}
	var missing *BlobError
	if _, err := forge(t, drop(layer)).Verify(t.Context(), nil); !errors.As(err, &missing) || missing.Digest != layer || missing.Got != "" {
		t.Error(err)
	}
	var stray *StrayError
	_, err := forge(t, func(m *Manifest, _ *collection) { m.Artifacts = m.Artifacts[:1] }).Verify(t.Context(), nil)
	if !errors.As(err, &stray) || stray.Digest != "sha256:"+sum([]byte("runc")) {
		t.Error(err)
	}
	var image *ImageError
	_, err = forge(t, func(m *Manifest, _ *collection) { m.Platform = "linux/arm64" }).Verify(t.Context(), nil)
	if !errors.As(err, &missing) && !errors.As(err, &image) {
		t.Error(err)
	}
	_, err = forge(t, func(m *Manifest, _ *collection) {
		m.Images[0].MediaType = "application/vnd.docker.distribution.manifest.list.v2+json"
	}).Verify(t.Context(), nil)
	if !errors.As(err, &image) || image.Reference != pause {
		t.Error(err)
	}
}
