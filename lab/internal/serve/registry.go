package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Registry is an OCI registry in memory. Use NewRegistry.
type Registry struct {
	RequestLog
	blobs   registry.BlobHandler
	backend http.Handler
	handler http.Handler
}

// NewRegistry returns an empty registry that lets everybody in.
func NewRegistry() *Registry {
	r := &Registry{blobs: registry.NewInMemoryBlobHandler()}
	r.backend = registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(r.blobs))
	r.handler = r.watch(r.backend)
	return r
}

func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.handler.ServeHTTP(w, req) }

// Image is a small image to push: some files and how to start it.
type Image struct {
	Files      []Entry
	Entrypoint []string
	Env        []string
}

// StaticImage holds one statically linked program and starts it. The program
// stands at /<name>.
func StaticImage(name, program string) Image {
	return Image{Files: []Entry{{Name: name, Source: program}}, Entrypoint: []string{"/" + name}}
}

// Push stores an image for linux/amd64 as repository:tag, such as
// "mirror/pause:3.10", and returns the digest of its manifest ("sha256:…").
// It needs no network: the registry need not be listening yet. Pushes are not
// in the log.
func (r *Registry) Push(ctx context.Context, tag string, image Image) (string, error) {
	ref, err := nameOf(tag)
	if err != nil {
		return "", fmt.Errorf("push image: %w", err)
	}
	img, err := image.build()
	if err != nil {
		return "", fmt.Errorf("build image %s: %w", tag, err)
	}
	if err := remote.Write(ref, img, r.pushing(ctx)...); err != nil {
		return "", fmt.Errorf("push image %s: %w", tag, err)
	}
	digest, err := img.Digest()
	return digest.String(), err
}

func nameOf(tag string) (name.Tag, error) { return name.NewTag("registry.lab/"+tag, name.Insecure) }

func (r *Registry) pushing(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(inProcess{r.backend})}
}

func (i Image) build() (v1.Image, error) {
	var layer bytes.Buffer
	if err := writeTar(&layer, i.Files); err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layer.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		return nil, err
	}
	return configure(img, v1.Config{Entrypoint: i.Entrypoint, Env: i.Env})
}

func configure(img v1.Image, c v1.Config) (v1.Image, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", "amd64", c
	return mutate.ConfigFile(img, file)
}

// inProcess answers requests by calling a handler, without a connection.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer r.Body.Close()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
