package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// arcPrograms are where the agent of Azure Arc has its program.
var arcPrograms = []string{"/usr/bin/azcmagent", "/opt/azcmagent/bin/azcmagent"}

// arcInputs is what the agent is told when it connects the machine. A token in it is
// read by nobody else, and it is gone when the program ends.
const arcInputs = paths.RunDir + "/azcmagent.json"

// arcAgent is what the agent says of itself.
type arcAgent struct {
	Status         string `json:"status"`
	Name           string `json:"resourceName"`
	Group          string `json:"resourceGroup"`
	SubscriptionID string `json:"subscriptionId"`
	program        string
}

// id is the machine's in Azure; "" where the agent is not connected to one.
func (a *arcAgent) id() string {
	if a.Name == "" || a.SubscriptionID == "" {
		return ""
	}
	return MachineID(a.SubscriptionID, a.Group, a.Name)
}

const agentDuring = "ask the agent of Azure Arc how it is"

var errNoAgent = errors.New("the Azure Connected Machine agent is not on this machine")

// agent asks the agent how it is.
//
// Source: learn.microsoft.com/azure/azure-arc/servers/azcmagent-show.
func (s *Source) agent(ctx context.Context) (*arcAgent, error) {
	program, err := s.arcProgram()
	if err != nil {
		return nil, err
	}
	if program == "" {
		return nil, failed(agentDuring, "Install the package azcmagent of packages.microsoft.com, which the machine's own package manager verifies, or name it in identity.arc.agent; then join again.",
			errNoAgent)
	}
	out, err := s.arc(ctx, program, "show", "-j")
	if err != nil {
		return nil, failed(agentDuring, arcRemedy, err)
	}
	a := &arcAgent{program: program}
	if err := json.Unmarshal(out, a); err != nil || a.Status == "" {
		return nil, failed(agentDuring, arcRemedy, errors.New("what azcmagent says of itself can't be read"))
	}
	return a, nil
}

// arcProgram is where the agent's program is; "" where it is not on the machine.
func (s *Source) arcProgram() (string, error) {
	for _, p := range arcPrograms {
		if info, err := ledger.Lstat(s.host, p); err != nil {
			return "", failed(agentDuring, "Run it as root.", err)
		} else if info != nil {
			return p, nil
		}
	}
	return "", nil
}

// nameTaken is what the agent ends with where Azure has a machine of that name.
//
// Source: learn.microsoft.com/azure/azure-arc/servers/troubleshoot-agent-onboard.
const nameTaken = 44

func (s *Source) arc(ctx context.Context, program string, args ...string) ([]byte, error) {
	out, err := s.host.Run(ctx, host.Command{Path: program, Args: args, Env: s.cliEnvironment()})
	if e, ok := errors.AsType[*host.ExitError](err); ok {
		err = fmt.Errorf("azcmagent %s ended with exit code %d: %s", args[0], e.Output.ExitCode, agentLine(e.Output))
		if e.Output.ExitCode == nameTaken {
			err = fmt.Errorf("%w: %w", errTaken, err)
		}
	}
	return out.Stdout, err
}

// agentLine is what the agent says of an error: it writes to its standard output unless
// it is told otherwise.
func agentLine(o host.Output) string {
	all := string(o.Stdout) + "\n" + string(o.Stderr)
	for l := range strings.Lines(all) {
		if strings.Contains(l, "AZCM") || strings.Contains(strings.ToLower(l), "level=fatal") {
			return line(l)
		}
	}
	return errorLine(all)
}

// connect has the agent register the machine. The token comes by a file: an argument
// would be there for everybody to see.
//
// Source: learn.microsoft.com/azure/azure-arc/servers/azcmagent-connect.
func (s *Source) connect(ctx context.Context, program string, inputs map[string]any) (err error) {
	text, err := json.Marshal(inputs)
	if err != nil {
		return err
	}
	if _, err := host.MkdirAll(s.host, path.Dir(arcInputs)); err != nil {
		return err
	}
	if err := host.WriteFile(s.host, arcInputs, text, host.Attributes{Mode: 0o600}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledger.RemoveIfThere(s.host, arcInputs)) }()
	_, err = s.arc(ctx, program, "connect", "--config", arcInputs)
	return err
}

// disconnect has the agent forget a machine that Azure knows no longer. One that is not
// connected, or to another machine, is left alone.
func (s *Source) disconnect(ctx context.Context, id string) error {
	a, err := s.agent(ctx)
	if err != nil || !SameResource(a.id(), id) {
		return err
	}
	_, err = s.arc(ctx, a.program, "disconnect", "--force-local-only")
	return err
}

// connectFailed is a machine that was not registered, and what to check.
//
// Source: learn.microsoft.com/azure/azure-arc/servers/troubleshoot-agent-onboard, agent
// error codes.
func connectFailed(id string, err error) error {
	remedy := taken
	if !errors.Is(err, errTaken) {
		remedy = agentRemedy(err)
	}
	const during = "register the machine with Azure Arc"
	return &exitcode.Error{Number: exitcode.Credential, During: during, Remedy: remedy, Err: fmt.Errorf("%s as %s: %w", during, id, err)}
}

const taken = "Choose another identity.arc.machineName, or delete the machine that is there."

func agentRemedy(err error) string {
	for code, remedy := range map[string]string{
		"exit code 42:": "Give the identity of identity.arc.registration the role " + OnboardingRole + " on the resource group.",
		"exit code 62:": "Check that Azure is reachable from this machine: azcmagent check; a proxy is set with azcmagent config set proxy.url.",
	} {
		if strings.Contains(err.Error(), code) {
			return remedy
		}
	}
	return "Look at the agent: azcmagent check, azcmagent logs; then join again."
}
