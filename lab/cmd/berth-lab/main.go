// Command berth-lab starts and handles a lab by hand.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/berth-dev/berth/lab"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "berth-lab:", err)
		os.Exit(exitCode(err))
	}
}

// app is what all commands share.
type app struct{ name string }

func root() *cobra.Command {
	a := &app{}
	cmd := &cobra.Command{
		Use:           "berth-lab",
		Short:         "A real Kubernetes control plane and real nodes on one machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&a.name, "lab", defaultName(), "name of the lab; $BERTH_LAB if set")
	cmd.AddCommand(a.prepare(), a.up(), a.bench(), a.demo(), a.down(), a.status(), a.node(), a.exec(), a.kubectl(), a.extension())
	return cmd
}

func (a *app) attach(ctx context.Context) (*lab.Lab, error) {
	return lab.Attach(ctx, lab.Config{Name: a.name})
}

// codeError makes the program exit with another program's code.
type codeError int

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func exitCode(err error) int {
	var code codeError
	if errors.As(err, &code) {
		return int(code)
	}
	return 1
}

func defaultName() string {
	if n := os.Getenv("BERTH_LAB"); n != "" {
		return n
	}
	return "lab"
}
