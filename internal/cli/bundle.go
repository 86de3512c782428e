package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/report"
)

func (e *env) bundle() *cobra.Command {
	c := &cobra.Command{
		Use: "bundle", Short: "Make, show and verify the one file for a site without network", Args: cobra.ArbitraryArgs,
		Long: "A bundle is one file with archives, programs and container images, a manifest and a signature. On a machine it\n" +
			"goes into " + artifact.BundleDir + "/, with the name *.bundle: what it has is not fetched. Its commands are create,\n" +
			"inspect and verify; docs/bundle.md describes the format.",
		RunE: e.noCommand,
	}
	c.AddCommand(e.bundleCreate(), e.bundleInspect(), e.bundleVerify())
	return c
}

// oneFile refuses all but one argument.
func (e *env) oneFile(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return e.usage(c, fmt.Errorf("%s wants one FILE, and has %d", c.CommandPath(), len(args)))
}

// withBundle does something with an open bundle; errors name the file.
func withBundle(name string, do func(*bundle.Bundle) error) error {
	f, size, err := bundle.OpenRegular(name)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := bundle.Open(f, size)
	if err == nil {
		err = do(b)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// megabytes is a size for people.
func megabytes(n int64) string {
	if n < 1e5 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// contents is what a bundle holds, in a few words.
func contents(m *bundle.Manifest) string {
	return fmt.Sprintf("%s and %s for %s, %s", report.Count(len(m.Artifacts), "artifact"), report.Count(len(m.Images), "image"), m.Platform, megabytes(m.Bytes()))
}

// maxKey bounds the files of keys, in bytes.
const maxKey = 64 << 10

// readKey reads the file of a key, or the beginning of what is none.
func readKey(name string) ([]byte, error) {
	f, _, err := bundle.OpenRegular(name)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return text, nil
}
