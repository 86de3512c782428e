package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const exitHelp = `Make a Linux machine a Kubernetes node and keep it one.

Exit codes: 0 done; 1 failed, or the command line is wrong; 2 changes are pending (plan), or a warning
counts (preflight, doctor); 3 the document was refused; 4 done, but something was kept or left; 130 interrupted.
Those of provision and provision-wait are the provisioning exit codes, each with a name and a hint in provision.json.`

// usage prints what is wrong and how it would be right.
func (e *env) usage(c *cobra.Command, err error) error {
	fmt.Fprintf(e.err, "error: %v\n\n%s", err, c.UsageString())
	return told(1)
}

// noCommand is what a command does that only holds others.
func (e *env) noCommand(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return e.usage(c, unknown(c, args[0]))
	}
	return e.usage(c, errors.New("a command is missing"))
}

// flagError: where a command holds others, a flag after a word is that of the
// command that was meant.
func (e *env) flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		err = unknown(c, args[0])
	}
	return e.usage(c, err)
}

// noArgs refuses arguments of a command that has only flags.
func (e *env) noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return e.usage(c, fmt.Errorf("%s takes no argument %q", c.CommandPath(), args[0]))
}

// publishedArgs: the published program passes over the arguments of its commands.
// Under berth's own name they are a mistake.
func (e *env) publishedArgs(c *cobra.Command, args []string) error {
	if c.Root().Name() == publishedName {
		return nil
	}
	return e.noArgs(c, args)
}

// unknown names the command that may have been meant.
func unknown(root *cobra.Command, name string) error {
	err := fmt.Errorf("unknown command %q", name)
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(name); len(near) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// help is cobra's command of that name, but it refuses what it does not know.
func (e *env) help() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Print the help of a command",
		RunE: func(c *cobra.Command, args []string) error {
			about := c.Root()
			for _, name := range args {
				next, _, err := about.Find([]string{name})
				if err != nil || next == about {
					return e.usage(c.Root(), unknown(about, name))
				}
				about = next
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
