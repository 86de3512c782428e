package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIsAnOCILayout reads a bundle as a tool for images does, which knows
// nothing of berth: by the names and rules of the image specification alone.
func TestIsAnOCILayout(t *testing.T) {
	files := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(create(t, sample(t), testKey(1))))
	for h, err := r.Next(); !errors.Is(err, io.EOF); h, err = r.Next() {
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	type descriptor struct {
		MediaType, Digest string
		Size              int
		Platform          *struct{ OS, Architecture string }
		Annotations       map[string]string
	}
	decode := func(raw []byte, v any) {
		t.Helper()
		if err := json.Unmarshal(raw, v); err != nil {
			t.Fatal(err)
		}
	}
	blob := func(d descriptor) []byte {
		t.Helper()
		raw := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if len(raw) != d.Size || "sha256:"+sum(raw) != d.Digest {
			t.Fatalf("%+v: %d bytes", d, len(raw))
		}
		return raw
	}
	var layout struct{ ImageLayoutVersion string }
	decode(files["oci-layout"], &layout)
	var index struct {
		SchemaVersion int
		MediaType     string
		Manifests     []descriptor
	}
	decode(files["index.json"], &index)
	if layout.ImageLayoutVersion != "1.0.0" || index.SchemaVersion != 2 || len(index.Manifests) != 1 {
		t.Fatalf("%+v %+v", layout, index)
	}
	if a := index.Manifests[0].Annotations; a["io.containerd.image.name"] != pause || a["org.opencontainers.image.ref.name"] != pause {
		t.Errorf("%+v", a)
	}
	var nested struct{ Manifests []descriptor }
	decode(blob(index.Manifests[0]), &nested)
	layers := 0
	for _, d := range nested.Manifests {
		if d.Platform.OS != "linux" || d.Platform.Architecture != "amd64" {
			continue
		}
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		decode(blob(d), &manifest)
		blob(manifest.Config)
		for _, l := range manifest.Layers {
			blob(l)
			layers++
		}
	}
	if layers != 2 {
		t.Errorf("%d layers", layers)
	}
}

// TestOpensslAgrees: keys as openssl makes them, and a signature that it
// verifies.
func TestOpensslAgrees(t *testing.T) {
	dir := t.TempDir()
	openssl := func(args ...string) {
		t.Helper()
		c := exec.Command("openssl", args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v: %s", args, err, out)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	openssl("genpkey", "-algorithm", "ed25519", "-out", "key")
	openssl("pkey", "-in", "key", "-pubout", "-out", "pub")
	private, err := ParsePrivateKey(read("key"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParsePublicKeys(read("pub"))
	if err != nil || !keys[0].Equal(private.Public()) {
		t.Fatal(err)
	}
	all := unpack(t, create(t, sample(t), private))
	var s struct{ Signature string }
	if err := json.Unmarshal(all[1].text, &s); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(s.Signature)
	if err != nil || len(raw) != ed25519.SignatureSize {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"sig": raw, "manifest": all[0].text} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openssl("pkeyutl", "-verify", "-pubin", "-inkey", "pub", "-rawin", "-in", "manifest", "-sigfile", "sig")
}
