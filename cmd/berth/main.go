// Command berth makes a Linux machine a Kubernetes node and keeps it one.
// Invoked as aks-node-controller or gardener-node-agent it answers that name's
// command line.
package main

import (
	"os"

	"github.com/berth-dev/berth/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args))
}
