package artifact

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/oci"
)

// layersOf reads the layers of an image, from the root down.
func layersOf(i *RemoteImage) (layers []string, err error) {
	content, err := oci.Walk(context.Background(), i, v1.Descriptor{Digest: digest.Digest(i.Digest), Size: -1}, oci.Linux("amd64"))
	if err != nil {
		return nil, err
	}
	for _, l := range content.Layers {
		in, err := i.Open(context.Background(), l)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		raw, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		layers = append(layers, string(raw))
	}
	return layers, nil
}

func TestImageInARegistry(t *testing.T) {
	r := newRegistry(t)
	layer := random(2 << 20) // the registry breaks off after each MiB
	config := r.blob([]byte(`{"os":"linux"}`), imageConfig)
	sum := r.manifest(t, "v1", config, r.blob(layer, imageLayer))
	for ref, named := range map[string]bool{"pause:v1": false, "pause@" + sum: true, "pause:v1@" + sum: true} {
		i, err := r.fetcher(Options{RequireDigests: named}).Image(t.Context(), r.at(ref), nil)
		if err != nil || i.Digest != sum || i.Named != named {
			t.Fatalf("%s: got %+v, %v", ref, i, err)
		}
		if got, err := layersOf(i); err != nil || len(got) != 1 || got[0] != string(layer) {
			t.Errorf("%s: other content, %v", ref, err)
		}
	}
	_, err := r.fetcher(Options{RequireDigests: true}).Image(t.Context(), r.at("pause:v1"), nil)
	if e, ok := errors.AsType[*RefusedError](err); !ok || !e.NoDigest {
		t.Errorf("without a digest: %v", err)
	}
	if _, err := r.fetcher(Options{}).Image(t.Context(), "https://registry.example/pause:v1", nil); !errors.As(err, new(*RefusedError)) {
		t.Errorf("no reference: %v", err)
	}
}

// What a registry says against a pull has the code and the hint of a download; the
// words for who makes a bundle are left out.
func TestRegistryRefusesAnImage(t *testing.T) {
	for status, want := range map[int]struct {
		code int
		hint string
	}{
		http.StatusUnauthorized: {exitcode.RegistryUnauthorized, "AcrPull"},
		http.StatusNotFound:     {0, "repository and tag"},
	} {
		r := newRegistry(t)
		r.wrap = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true }
		_, err := r.fetcher(Options{}).Image(t.Context(), r.at("pause:v1"), nil)
		e, ok := errors.AsType[*PullError](err)
		if !ok || exitcode.Known(err) != want.code || !strings.Contains(e.Hint(), want.hint) || !strings.Contains(err.Error(), r.at("pause:v1")) {
			t.Errorf("%d: %v, code %d", status, err, exitcode.Known(err))
		}
	}
}

// A layer that its registry has no more fails as the image.
func TestImageLosesALayer(t *testing.T) {
	r := newRegistry(t)
	r.manifest(t, "v1", r.blob([]byte("{}"), imageConfig), r.blob([]byte("layer"), imageLayer))
	i, err := r.fetcher(Options{}).Image(t.Context(), r.at("pause:v1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	delete(r.blobs, "sha256:"+sumOf([]byte("layer")))
	_, err = layersOf(i)
	refused, _ := remote.Cause(err)
	if !errors.As(err, new(*PullError)) || refused == nil || refused.Status != http.StatusNotFound {
		t.Errorf("got %v", err)
	}
}
