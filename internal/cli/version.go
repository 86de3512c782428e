package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = ""

// Version is what the linker set, else the module's version, else dev.
func Version() string {
	if version != "" {
		return version
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "dev"
}

func (e *env) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: e.publishedArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(e.out, Version())
			return err
		},
	}
}
