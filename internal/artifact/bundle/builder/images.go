package builder

import (
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/artifact/oci"
	"github.com/berth-dev/berth/internal/desired"
)

// images are those of the flags, and those that the document wants besides.
func (b *builder) images(flags, wanted []string, platform string) ([]bundle.ImageSpec, error) {
	client := registryClient(b.Client, platform)
	var all []bundle.ImageSpec
	have := map[string]bool{}
	for _, text := range flags {
		some, err := b.image(client, text)
		if err != nil {
			reference, _, _ := strings.Cut(text, "=")
			return nil, fmt.Errorf("--image %s: %w", desired.BareURL(reference), err)
		}
		for _, i := range some {
			complete, _ := bundle.CompleteReference(i.Reference) // Create refuses what is none
			have[complete] = true
		}
		all = append(all, some...)
	}
	for _, reference := range wanted {
		complete, err := bundle.CompleteReference(reference)
		if err != nil {
			return nil, err
		}
		if have[complete] {
			continue
		}
		some, err := b.image(client, reference)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// image reads REFERENCE, REFERENCE=PATH or PATH.
func (b *builder) image(client *oci.Client, text string) ([]bundle.ImageSpec, error) {
	reference, file, ok := strings.Cut(text, "=")
	if !ok && (strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../")) {
		reference, file = "", text
	}
	if file == "" {
		s, err := bundle.RegistryImage(client, strings.TrimPrefix(reference, oci.Scheme), bundle.Asks)
		return []bundle.ImageSpec{{Reference: strings.TrimPrefix(reference, oci.Scheme), Source: s}}, err
	}
	local, err := b.local(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	names := []string{reference}
	if reference == "" {
		if names = local.Names(); len(names) == 0 {
			return nil, fmt.Errorf("%s gives its images no names; give one: --image REFERENCE=%s", file, file)
		}
	}
	var all []bundle.ImageSpec
	for _, n := range names {
		s, err := local.Image(n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, bundle.ImageSpec{Reference: n, Source: s})
	}
	return all, nil
}

func (b *builder) local(name string) (*bundle.Local, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return bundle.OpenLocal(os.DirFS(name))
	}
	f, size, err := bundle.OpenRegular(name)
	if err != nil {
		return nil, err
	}
	b.opened = append(b.opened, f)
	files, err := bundle.Archive(f, size)
	if err != nil {
		return nil, err
	}
	return bundle.OpenLocal(files)
}

// registryClient asks registries: anonymously, but Azure's as this machine's
// managed identity if they want to know.
func registryClient(client *http.Client, platform string) *oci.Client {
	if client == nil {
		client = &http.Client{}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own := t.Clone()
			own.DisableCompression, own.ResponseHeaderTimeout = true, 30*time.Second
			client.Transport = own
		}
	}
	acr := &oci.ACR{HTTP: client}
	return &oci.Client{HTTP: client, Credentials: acr.Credential, Arch: path.Base(platform)}
}
