package cli

import (
	"io"
	"log/slog"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent"
	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/event"
	"github.com/berth-dev/berth/internal/agent/footprint"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
)

func (e *env) agent() *cobra.Command {
	c := &cobra.Command{
		Use: "agent", Short: "Keep this machine as a Secret of its cluster says",
		Long: "Keep this machine as the OperatingSystemConfig or NodeConfig in a Secret of its cluster says: take each new one,\n" +
			"repair what others change, and say on the Node which one is in force. KUBECONFIG, where it is set, names a\n" +
			"kubeconfig that stands in for a certificate of the agent's own. docs/agent.md describes it.",
	}
	e.agentCommand(c)
	return c
}

// agentCommand makes a command the agent's: under berth's own name and as the
// published program.
func (e *env) agentCommand(c *cobra.Command) {
	dir := config.BaseDir
	c.Args = e.noArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return e.runAgent(c, dir) }
	bindConfigDir(c, &dir)
	c.AddCommand(e.agentBootstrap(), e.agentPause(), e.agentReset())
}

func (e *env) runAgent(c *cobra.Command, dir string) error {
	h, err := e.open("/")
	if err != nil {
		return err
	}
	worked := resident(c.Context())
	a, err := e.newAgent(h, fromHere(dir), fromHere(os.Getenv("KUBECONFIG")), worked)
	if is[*config.Error](err) {
		return &exitcode.RefusedError{Err: err}
	}
	if err != nil {
		return err
	}
	return a.Run(c.Context())
}

// NewAgent is the agent of a machine, wired as the command has it; its log goes to w.
func NewAgent(h host.Host, w io.Writer, configDir string) (*agent.Agent, error) {
	return (&env{err: w}).newAgent(h, configDir, "", func() {})
}

func (e *env) newAgent(h host.Host, configDir, kubeconfig string, worked func()) (*agent.Agent, error) {
	if o, err := config.ReadOptions(h); err == nil { // the agent itself tells of an error
		e.requireDigests = o.RequireDigests
	}
	return agent.New(agent.Settings{
		Host: h, Issuer: identity.New(h).Telling(tellLate), Version: Version(), ConfigDir: configDir, Kubeconfig: kubeconfig,
		NewLog:  func(level, format string) *slog.Logger { return agent.NewLog(e.err, level, format) },
		Status:  notifyStatus,
		Explain: agent.Explain,
		Open: func(src agent.Source, secrets agent.SecretReader, try bool) reconcile.Opener {
			return e.opener(h, src, secrets, try)
		},
		Release: func(size int) {
			footprint.Release(size)
			worked()
		},
		Updater: func(o *config.Options, events *event.Recorder, log *slog.Logger) reconcile.SelfUpdate {
			return e.updater(h, configDir, o, events, log)
		},
		Ready: func() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) },
	})
}

// tellLate tells that the agent's certificate is waited for, and who would end that.
func tellLate(err error) {
	code, cause, remedy := agent.Explain(err)
	slog.Warn("the agent's certificate is waited for", "code", code, "error", cause, "hint", remedy)
	notifyStatus(code + ": " + cause + " — " + remedy)
}
