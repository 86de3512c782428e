package imagestore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
)

// TestImportLayout imports the first image of an OCI layout for kubelet: the one
// that BERTH_IMAGE_LAYOUT names, which stays, or one of its own.
func TestImportLayout(t *testing.T) {
	dir := os.Getenv("BERTH_IMAGE_LAYOUT")
	if dir == "" {
		dir = writeLayout(t, multi("registry.test/layout:1", 1, 1000))
	}
	img := readLayout(t, dir)
	socket := os.Getenv("BERTH_CONTAINERD")
	s := target{Store: &Store{own: settings{socket: socket}}}
	if socket == "" {
		s.own.socket = startFake(t).socket
	}
	for range 2 {
		start := time.Now()
		if err := s.Import(within(t, time.Minute), img); err != nil {
			t.Fatal(err)
		}
		t.Logf("imported %s in %s", img.Reference, time.Since(start).Round(time.Millisecond))
		wantHas(t, s, img, "")
	}
	if socket != "" {
		waitCRI(t, s.Store, img.Reference)
	}
}

func readLayout(t *testing.T, dir string) Image {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	first := index.Manifests[0]
	return Image{Reference: first.Annotations[ocispec.AnnotationRefName], Digest: first.Digest.String(),
		Source: opener(func(digest string) (io.ReadCloser, error) {
			return os.Open(filepath.Join(dir, "blobs", strings.Replace(digest, ":", "/", 1)))
		})}
}

func writeLayout(t *testing.T, img *sample) string {
	t.Helper()
	dir := t.TempDir()
	must(os.MkdirAll(filepath.Join(dir, "blobs/sha256"), 0o755))
	for d, b := range img.blobs {
		must(os.WriteFile(filepath.Join(dir, "blobs", strings.Replace(d, ":", "/", 1)), b, 0o644))
	}
	index := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"digest":%q,"annotations":{%q:%q}}]}`, img.Digest, ocispec.AnnotationRefName, img.Reference)
	must(os.WriteFile(filepath.Join(dir, "index.json"), []byte(index), 0o644))
	return dir
}

// waitCRI waits until the interface that kubelet uses lists an image: the plugin
// behind it learns of a new image by an event.
func waitCRI(t *testing.T, s *Store, ref string) {
	t.Helper()
	c, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	start := time.Now()
	for time.Since(start) < 10*time.Second {
		var request, answer []byte // an empty request asks for all
		if err := c.conn.Invoke(within(t, 5*time.Second), "/runtime.v1.ImageService/ListImages", &request, &answer, grpc.ForceCodec(rawCodec{})); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(answer, []byte(ref)) {
			t.Logf("kubelet sees %s after %s", ref, time.Since(start).Round(time.Millisecond))
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("CRI does not list %s", ref)
}

// rawCodec sends and takes messages as bytes.
type rawCodec struct{ encoding.Codec }

func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (rawCodec) Name() string                       { return "proto" }
