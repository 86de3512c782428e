package artifact

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/artifact/oci"
	"github.com/berth-dev/berth/internal/exitcode"
)

// partsOf reads what a manifest and its parts are, from the root down.
func partsOf(t *testing.T, i *RemoteImage, digests ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, d := range digests {
		in, size, err := i.Blob(d)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(in)
		if err != nil || int64(len(raw)) != size || in.Close() != nil {
			t.Fatalf("%s: %d of %d bytes, %v", d, len(raw), size, err)
		}
		all[d] = string(raw)
	}
	return all
}

func TestImageInARegistry(t *testing.T) {
	r := newRegistry(t)
	layer := random(2 << 20) // the registry breaks off after each MiB
	config := r.blob([]byte(`{"os":"linux"}`), imageConfig)
	digest := r.manifest(t, "v1", config, r.blob(layer, imageLayer))
	for ref, named := range map[string]bool{"pause:v1": false, "pause@" + digest: true, "pause:v1@" + digest: true} {
		i, err := r.fetcher(Options{RequireDigests: named}).Image(t.Context(), r.at(ref), nil)
		if err != nil || i.Digest != digest || i.Named != named {
			t.Fatalf("%s: got %+v, %v", ref, i, err)
		}
		if _, _, err := i.Blob("sha256:" + sumOf(layer)); err == nil {
			t.Error("gave a blob that no manifest was seen to list")
		}
		got := partsOf(t, i, digest, config["digest"].(string), "sha256:"+sumOf(layer))
		if got["sha256:"+sumOf(layer)] != string(layer) || !strings.Contains(got[digest], imageLayer) {
			t.Errorf("%s: other content", ref)
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
	digest := r.manifest(t, "v1", r.blob([]byte("{}"), imageConfig), r.blob([]byte("layer"), imageLayer))
	i, err := r.fetcher(Options{}).Image(t.Context(), r.at("pause:v1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	partsOf(t, i, digest)
	delete(r.blobs, "sha256:"+sumOf([]byte("layer")))
	in, _, err := i.Blob("sha256:" + sumOf([]byte("layer")))
	if err == nil {
		_, err = io.ReadAll(in)
	}
	refused, _ := oci.Cause(err)
	if !errors.As(err, new(*PullError)) || refused == nil || refused.Status != http.StatusNotFound {
		t.Errorf("got %v", err)
	}
}
