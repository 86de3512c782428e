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
		RunE: func(*cobra.Command, []string) error { return e.printVersion() },
	}
}

func (e *env) printVersion() error {
	_, err := fmt.Fprintln(e.out, Version())
	return err
}

// versionFlag gives a root command --version. cobra's own prints more than the version, and
// with a template of ours the linker keeps every exported method of the program, for any may
// be called by its name.
func (e *env) versionFlag(root *cobra.Command) {
	asked := root.Flags().BoolP("version", "v", false, "print the version")
	check, run := root.Args, root.RunE
	root.Args = func(c *cobra.Command, args []string) error {
		if *asked {
			return nil
		}
		return check(c, args)
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		if *asked {
			return e.printVersion()
		}
		return run(c, args)
	}
}
