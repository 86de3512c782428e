// Package cli is the command line: one file for each command, no logic.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent/footprint"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/provision"
)

// env is what the commands have of the world.
type env struct {
	start    time.Time
	out, err io.Writer
	// program is how this one was called.
	program string
	// terminal: err is one.
	terminal bool
	width    int
	// uid is who runs the program.
	uid int
	// requireDigests is a flag of the commands that may fetch, takeOver one of those
	// that plan.
	requireDigests, takeOver bool
	// noRevert is one of those that try a change.
	noRevert bool
	// drain and drainTimeout are flags of those that may start another kubelet.
	drain        bool
	drainTimeout time.Duration
	open         func(root string) (host.Host, error)
	// ledger is the ledger's reader of all parts.
	ledger ledger.Reader
}

// Main runs the command line and returns the exit code. args[0] is the name
// under which the program was started.
func Main(args []string) int {
	footprint.Brief()
	e := &env{start: time.Now(), out: os.Stdout, err: os.Stderr, uid: os.Geteuid(), open: openHost}
	e.terminal, e.width = terminal(os.Stderr)
	ctx, _ := interruptible() // until the process ends
	return e.run(ctx, args)
}

func (e *env) run(ctx context.Context, args []string) int {
	root := e.berth()
	switch name := path.Base(args[0]); {
	case strings.HasPrefix(name, publishedName):
		root = e.nodeController()
	case strings.HasPrefix(name, publishedAgent):
		root = e.nodeAgent()
	case strings.HasPrefix(name, publishedFlex):
		root = e.flexNode()
	}
	e.versionFlag(root)
	e.program = args[0]
	root.SetArgs(args[1:])
	root.SetOut(e.out)
	root.SetErr(e.err)
	err := root.ExecuteContext(ctx)
	if !is[told](err) {
		err = provision.WithCause(ctx, err)
	}
	return e.exit(err)
}

// interruptible is a context that the first signal ends; a second one ends the
// program. A reader that went away is no reason to die.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signal.Ignore(syscall.SIGPIPE)
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup(1) means that the run goes on
		signal.Notify(ch, syscall.SIGHUP)
	}
	go func() {
		if s, ok := <-ch; ok {
			signal.Stop(ch)
			cancel(fmt.Errorf("%w by signal %d (%s)", exitcode.ErrInterrupted, s, s))
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}

// berth is the whole command tree.
func (e *env) berth() *cobra.Command {
	root := e.root("berth", "Make a Linux machine a Kubernetes node and keep it one")
	root.Long = exitHelp
	root.AddCommand(e.provision(), e.provisionWait(), e.render(), e.plan(), e.apply(), e.confirm(), e.status(), e.timeline(), e.bundle(), e.agent(), e.rbac(), e.approver(), e.config(), e.schema(),
		e.version(), e.checkHotfix(), e.downloadHotfix(), e.node())
	root.AddCommand(e.preflight(), e.doctor())
	root.AddCommand(e.join(), e.leave())
	root.AddCommand(e.token())
	return root
}

// The published names.
const (
	publishedName  = "aks-node-controller"
	publishedAgent = "gardener-node-agent"
	publishedFlex  = "aks-flex-node"
)

// nodeController is the command tree of the published name.
func (e *env) nodeController() *cobra.Command {
	root := e.root(publishedName, "Provision an AKS node")
	root.AddCommand(e.provision(), e.provisionWait(), e.version(), e.checkHotfix(), e.downloadHotfix(), e.node())
	return root
}

// nodeAgent is the command tree of the agent's published name: the root itself is
// the agent.
func (e *env) nodeAgent() *cobra.Command {
	root := e.root(publishedAgent, "Keep this machine as a Secret of its cluster says")
	e.agentCommand(root)
	root.AddCommand(e.version(), e.node())
	return root
}

// flexNode is the command tree of the published name of the machines that join AKS
// from elsewhere.
func (e *env) flexNode() *cobra.Command {
	root := e.root(publishedFlex, "Join this machine to an AKS cluster")
	root.AddCommand(e.bootstrap(), e.unbootstrap(), e.flexPreflight())
	root.AddCommand(e.kubelogin(), e.version(), e.node())
	return root
}

func (e *env) root(name, short string) *cobra.Command {
	root := &cobra.Command{
		Use: name, Short: short, SilenceUsage: true, SilenceErrors: true,
		Args: cobra.ArbitraryArgs, RunE: e.noCommand,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(e.help())
	root.SetFlagErrorFunc(e.flagError)
	return root
}
