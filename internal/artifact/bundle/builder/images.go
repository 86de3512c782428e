package builder

import (
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/oci"
)

// images are those of the flags, and those that the document wants besides.
func (b *builder) images(flags, wanted []string, platform string) ([]bundle.ImageSpec, error) {
	client := b.registryClient(platform)
	var all []bundle.ImageSpec
	have := map[string]bool{}
	for _, text := range flags {
		some, err := b.image(client, text)
		if err != nil {
			reference, _, _ := strings.Cut(text, "=")
			return nil, fmt.Errorf("--image %s: %w", desired.BareURL(reference), err)
		}
		for _, i := range some {
			if ref, err := oci.ParseImage(i.Reference); err == nil { // Create refuses what is none
				have[ref.Complete()] = true
			}
		}
		all = append(all, some...)
	}
	for _, reference := range wanted {
		ref, err := oci.ParseImage(reference)
		if err != nil {
			return nil, err
		}
		if have[ref.Complete()] {
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
func (b *builder) image(client *remote.Client, text string) ([]bundle.ImageSpec, error) {
	reference, file, ok := strings.Cut(text, "=")
	if !ok && (strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../")) {
		reference, file = "", text
	}
	if file == "" {
		ref, err := oci.ParseImage(strings.TrimPrefix(reference, oci.Scheme))
		return []bundle.ImageSpec{{Reference: ref.Complete(), Source: bundle.RegistryImage(client, ref, bundle.Asks)}}, err
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

// registryClient asks registries: anonymously, but those that the options' identity
// knows by name if they want to know.
func (b *builder) registryClient(platform string) *remote.Client {
	client := b.Client
	if client == nil {
		client = &http.Client{}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own := t.Clone()
			own.DisableCompression, own.ResponseHeaderTimeout = true, 30*time.Second
			client.Transport = own
		}
	}
	c := &remote.Client{HTTP: client, Arch: path.Base(platform)}
	if b.Identity != nil {
		c.Credentials = b.Identity(client, nil)
	}
	return c
}
