package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// page is the reference page of a command in docs/commands.
func page(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n<!-- Generated from internal/cli by go test ./internal/cli -run Pages -update. -->\n\n", c.CommandPath())
	fmt.Fprintf(&b, "%s.\n\n    %s\n\n", c.Short, c.UseLine())
	if c.Long != "" {
		b.WriteString(c.Long + "\n\n")
	}
	var flags strings.Builder
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			flags.WriteString(flagRow(f))
		}
	})
	if flags.Len() > 0 {
		b.WriteString("| flag | default | meaning |\n|---|---|---|\n" + flags.String() + "\n")
	}
	b.WriteString("Exit codes: [exit-codes.md](../exit-codes.md).\n")
	return b.String()
}

// noDefaults are the zero values, as pflag prints them.
var noDefaults = []string{"", "false", "0s", "[]"}

func flagRow(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	name := "`--" + f.Name
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	if value != "" {
		name += " " + value
	}
	initial := ""
	if !slices.Contains(noDefaults, f.DefValue) {
		initial = "`" + f.DefValue + "`"
	}
	return fmt.Sprintf("| %s` | %s | %s |\n", name, initial, usage)
}
