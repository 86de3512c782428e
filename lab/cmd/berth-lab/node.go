package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/berth-dev/berth/lab"
	"github.com/spf13/cobra"
)

func (a *app) node() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Add, reboot, crash, start, stop or remove a node"}
	cmd.AddCommand(a.nodeAdd(),
		a.nodeDo("reboot", "Reboot a node from inside", (*lab.Node).Reboot),
		a.nodeDo("crash", "Take a node's power", (*lab.Node).Crash),
		a.nodeDo("start", "Boot a node that does not run", (*lab.Node).Start),
		a.nodeDo("stop", "Power a node off", (*lab.Node).Stop),
		a.nodeDo("rm", "Remove a node and its disk", (*lab.Node).Remove),
	)
	return cmd
}

func (a *app) nodeAdd() *cobra.Command {
	var c lab.NodeConfig
	var userData, flavour string
	cmd := &cobra.Command{Use: "add NAME", Short: "Boot a node", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			c.Name, c.Flavour, c.UserData = args[0], lab.Flavour(flavour), []byte("#cloud-config\n{}\n")
			if userData != "" {
				if c.UserData, err = os.ReadFile(userData); err != nil {
					return fmt.Errorf("read user data: %w", err)
				}
			}
			l, err := a.attach(cmd.Context())
			if err != nil {
				return err
			}
			if err := l.Rebuild(cmd.Context()); err != nil {
				return err
			}
			return addNode(cmd.Context(), l, c)
		}}
	cmd.Flags().StringVar(&userData, "user-data", "", "file with what the cloud hands to cloud-init")
	cmd.Flags().StringVar(&flavour, "flavour", string(lab.Prebaked), "image of the node: prebaked or bare")
	cmd.Flags().StringVar(&c.InstanceID, "instance-id", "", "instance-id for cloud-init")
	cmd.Flags().BoolVar(&c.CgroupV2, "cgroup-v2", false, "boot with cgroup v2 only")
	return cmd
}

func (a *app) nodeDo(verb, short string, do func(*lab.Node, context.Context) error) *cobra.Command {
	return &cobra.Command{Use: verb + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := a.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return do(n, cmd.Context())
		}}
}

func (a *app) find(ctx context.Context, name string) (*lab.Node, error) {
	l, err := a.attach(ctx)
	if err != nil {
		return nil, err
	}
	return l.Node(name)
}

func (a *app) exec() *cobra.Command {
	return &cobra.Command{Use: "exec NAME -- COMMAND [ARG...]", Short: "Run a command in a node", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := a.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			c, err := n.Command(cmd.Context(), args[1:]...)
			if err != nil {
				return err
			}
			return passThrough(c)
		}}
}

func (a *app) extension() *cobra.Command {
	return &cobra.Command{Use: "cse NAME COMMAND", Short: "Run a command in a node as the CustomScript extension does", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := a.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			message, code, err := n.RunExtension(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			fmt.Println(message)
			if code != 0 {
				return codeError(code)
			}
			return nil
		}}
}

func (a *app) kubectl() *cobra.Command {
	return &cobra.Command{Use: "kubectl [ARG...]", Short: "Run kubectl as the lab's administrator", DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.attach(cmd.Context())
			if err != nil {
				return err
			}
			return passThrough(l.KubectlCommand(cmd.Context(), args...))
		}}
}

func passThrough(c *exec.Cmd) error {
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return codeError(exit.ExitCode())
	}
	return err
}
