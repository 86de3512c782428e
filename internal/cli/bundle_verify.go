package cli

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/artifact/bundle"
)

func (e *env) bundleVerify() *cobra.Command {
	var keyFiles []string
	var output string
	c := &cobra.Command{
		Use: "verify FILE", Short: "Say whether a bundle is whole and signed by a trusted key", Args: e.oneFile,
		Long: "Read a whole bundle and say whether a trusted key signed its manifest, each part has its digest, each image is\n" +
			"complete, and nothing else is in it. Trusted are the keys that --key names; without it, those in\n" +
			bundle.KeyDir + "/*.pem of this machine. Where there is none, the signature is not verified, and that is said.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf(output, "text", "json", "yaml"); err != nil {
				return e.usage(c, err)
			}
			keys, err := e.trusted(keyFiles)
			if err != nil {
				return err
			}
			return bundle.With(args[0], func(b *bundle.Bundle) error { return e.verify(c.Context(), args[0], b, keys, output) })
		},
	}
	c.Flags().StringArrayVar(&keyFiles, "key", nil, "trust the public key in `FILE` (PEM), and none of the machine's; may be repeated")
	c.Flags().StringVarP(&output, "output", "o", "text", "print as `FORMAT`: text, json or yaml")
	return c
}

// trusted are the keys that were named, else those of this machine.
func (e *env) trusted(files []string) ([]ed25519.PublicKey, error) {
	if len(files) == 0 {
		h, err := e.open("/")
		if err != nil {
			return nil, err
		}
		return bundle.TrustedKeys(h)
	}
	return bundle.ReadPublicKeys(files)
}

func (e *env) verify(ctx context.Context, name string, b *bundle.Bundle, keys []ed25519.PublicKey, output string) error {
	r, err := b.Verify(ctx, keys)
	if err != nil {
		return err
	}
	if output != "text" {
		return encode(e.out, output, r)
	}
	_, err = fmt.Fprintf(e.out, "%s is whole: %s\n%s\n", name, b.Manifest().Summary(), r.Signer())
	return err
}
