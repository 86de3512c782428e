package cli

import (
	"context"
	"errors"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/artifact/bundle/builder"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

// createFlags are the flags of bundle create.
type createFlags struct {
	document, key, output, platform string
	artifacts, images               []string
}

func (e *env) bundleCreate() *cobra.Command {
	var f createFlags
	c := &cobra.Command{
		Use: "create -o FILE", Short: "Write a bundle", Args: e.noArgs,
		Long: `Write a bundle of what a document wants, of single artifacts and of container images. The same content makes
the same bytes. FILE is there when it is whole, and not before; an older one is replaced.

--filename takes all artifacts that the document names by URL, and its sandbox (pause) image. Files that an
OperatingSystemConfig takes out of images (imageRef) are left out, and named: they come out of a registry. So is the
image that installs the driver of GPUs, unless --image gives it: the machine's own image says which version it takes.
--artifact takes an https, http or oci URL, or a file of this machine: [NAME[@VERSION]=]SOURCE[#sha256=HEX].
With the NAME of an artifact of the document, its content is taken from SOURCE and still stands for the document's
URLs.
--image takes a reference, which is asked of its registry, or REFERENCE=PATH with PATH an OCI image layout or an
archive of docker save; a PATH alone (with a slash in front, or ./) takes all images that it names.

Proxies are those of the environment (HTTPS_PROXY, NO_PROXY). While it works, room for what is fetched is needed
beside FILE.`,
		Example: `  openssl genpkey -algorithm ed25519 -out bundle.key
  berth bundle create -f node.json --key bundle.key -o node.bundle
  berth bundle create --artifact runc@1.4.3=./runc.amd64 --image registry.k8s.io/pause:3.10.1 -o extra.bundle`,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.document == "" && len(f.artifacts)+len(f.images) == 0 {
				return e.usage(c, errors.New("nothing to bundle: give --filename, --artifact or --image"))
			}
			return e.createBundle(c.Context(), f)
		},
	}
	c.Flags().StringVarP(&f.document, "filename", "f", "", "take what the document in `FILE` wants; - is standard input")
	c.Flags().StringArrayVar(&f.artifacts, "artifact", nil, "take an `ARTIFACT`; may be repeated")
	c.Flags().StringArrayVar(&f.images, "image", nil, "take an `IMAGE`; may be repeated")
	c.Flags().StringVar(&f.key, "key", "", "sign with the ed25519 key in `FILE` (PEM, PKCS#8)")
	c.Flags().StringVarP(&f.output, "output", "o", "", "write `FILE`")
	c.Flags().StringVar(&f.platform, "platform", "linux/"+runtime.GOARCH, "what it is for, as `OS/ARCH`; without it, this machine's")
	c.Flags().Lookup("platform").DefValue = "" // not the same everywhere
	e.bindDigests(c)
	_ = c.MarkFlagRequired("output") // the flag exists
	return c
}

func (e *env) createBundle(ctx context.Context, f createFlags) error {
	h, err := e.open("/")
	if err != nil {
		return err
	}
	key, err := bundle.ReadPrivateKey(f.key)
	if err != nil {
		return err
	}
	r := builder.Request{Platform: f.platform, Artifacts: f.artifacts, Images: f.images}
	if f.document != "" {
		if r.Document, err = provision.ReadContract(ctx, f.document); err != nil {
			return err
		}
	}
	p := e.progress()
	built, err := builder.Build(ctx, e.builder(h, p), r, f.output, key)
	if err != nil {
		return err
	}
	p.Say("wrote " + f.output + ": " + built.Text())
	return nil
}

func (e *env) builder(h host.Host, p *report.Progress) builder.Options {
	return builder.Options{
		Host: h, UID: e.uid, GID: os.Getegid(), RequireDigests: e.requireDigests, Observer: p.Observe, Say: p.Say,
		Identity: azure.RegistryIdentity,
	}
}
