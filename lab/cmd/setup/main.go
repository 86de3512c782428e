// Command setup installs the Debian packages whose programs the tests, the lab
// and the bench call; "setup tests" only those of the tests that start no
// machine. Where all are there it does nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/lab/internal/hostdeps"
	"github.com/berth-dev/berth/lab/internal/progress"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := install(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "setup:", err)
		os.Exit(1)
	}
}

func install(ctx context.Context, args []string) error {
	log := &progress.Log{W: os.Stdout}
	switch what := strings.Join(args, " "); what {
	case "":
		return hostdeps.All(ctx, log)
	case "tests":
		return hostdeps.Tests(ctx, log)
	default:
		return fmt.Errorf("install %q: there is only \"tests\", or nothing for all", what)
	}
}
