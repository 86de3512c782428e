package serve

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"archive/tar"
	"io"
)

func TestRegistry(t *testing.T) {
	r := NewRegistry()
	digest, err := r.Push(t.Context(), "mirror/pause:3.10", Image{
		Files: []Entry{{Name: "pause", Data: []byte("program")}}, Entrypoint: []string{"/pause"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Requests()) != 0 {
		t.Errorf("the push is in the log")
	}
	host := strings.TrimPrefix(start(t, r), "http://")
	for _, ref := range []string{host + "/mirror/pause:3.10", host + "/mirror/pause@" + digest} {
		parsed, err := name.ParseReference(ref, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		img, err := remote.Image(parsed)
		if err != nil {
			t.Fatal(err)
		}
		files := tar.NewReader(mutate.Extract(img))
		h, err := files.Next()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(files)
		if err != nil || h.Name != "pause" || h.Mode != 0o755 || string(body) != "program" {
			t.Errorf("%s holds %+v %q, %v", ref, h, body, err)
		}
		config, err := img.ConfigFile()
		if err != nil || config.Config.Entrypoint[0] != "/pause" || config.Architecture != "amd64" {
			t.Errorf("config %+v, %v", config, err)
		}
	}
	if n, _ := r.Count("/v2/mirror/pause/manifests/3.10"); n != 1 {
		t.Errorf("%d manifest requests", n)
	}
}
