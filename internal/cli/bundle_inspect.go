package cli

import (
	"fmt"
	"io"
	"strings"

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
			return withBundle(args[0], func(b *bundle.Bundle) error {
				if output != "text" {
					return encode(e.out, output, inspected{b.KeyID(), b.Manifest()})
				}
				_, err := io.WriteString(e.out, inspection(b))
				return err
			})
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "print as `FORMAT`: text, json or yaml")
	return c
}

func inspection(b *bundle.Bundle) string {
	var text strings.Builder
	m := b.Manifest()
	fmt.Fprintf(&text, "%s\n", contents(m))
	if id := b.KeyID(); id != "" {
		fmt.Fprintf(&text, "says to be signed by key %s\n", id)
	} else {
		text.WriteString("not signed\n")
	}
	for _, a := range m.Artifacts {
		fmt.Fprintf(&text, "\nartifact %s\n  sha256:%s, %s\n", strings.TrimSpace(a.Name+" "+a.Version), a.SHA256, megabytes(a.Size))
		for _, u := range a.URLs {
			fmt.Fprintf(&text, "  %s\n", u)
		}
	}
	for _, i := range m.Images {
		fmt.Fprintf(&text, "\nimage %s\n  %s\n", i.Reference, i.Digest)
	}
	return text.String()
}
