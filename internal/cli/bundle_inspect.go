package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/artifact/bundle"
)

// inspected is what inspect prints as JSON. Its keys are part of the interface.
type inspected struct {
	// KeyID is the key that the bundle says it is signed by; "" if it is not.
	KeyID    string           `json:"keyID"`
	Manifest *bundle.Manifest `json:"manifest"`
}

func (e *env) bundleInspect() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "inspect FILE", Short: "Print what a bundle says that it holds", Args: e.oneFile,
		Long: "Print what a bundle says that it holds. Only its manifest and the headers of its members are read: that the\n" +
			"content and the signature are right, berth bundle verify says.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf(output, "text", "json", "yaml"); err != nil {
				return e.usage(c, err)
			}
			return bundle.With(args[0], func(b *bundle.Bundle) error {
				if output != "text" {
					return encode(e.out, output, inspected{b.KeyID(), b.Manifest()})
				}
				_, err := io.WriteString(e.out, b.Text())
				return err
			})
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "print as `FORMAT`: text, json or yaml")
	return c
}
