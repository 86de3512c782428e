package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
	"github.com/berth-dev/berth/internal/yamltext"
)

// Keep is a node that its agent keeps as a file on the machine says, without a Secret.
// All fields but Token are required.
type Keep struct {
	// Program is where the agent is, Version its own.
	Program, Version string
	// File is the NodeConfig's, absolute and clean.
	File string
	// RequireDigests: the agent, too, fetches nothing of which nobody gives the digest.
	RequireDigests bool
	// Node is what the machine is called in its cluster, Kubernetes kubelet's version there.
	Node, Kubernetes string
	// Server and CAFile are the cluster's API server.
	Server, CAFile string
	// Token is what the agent's first certificate is asked for with; "" where there is
	// none. It is read where it is needed.
	Token func() (desired.Secret, error)
}

// noSecret stands where the published configuration names a Secret: nobody reads it.
const noSecret = "none"

// Start makes the agent a service that keeps the node. What is so already is not touched;
// an agent that something else brought here has to follow the file, too.
func (k *Keep) Start(ctx context.Context, h host.Host, apply func(context.Context, *desired.State) (*converge.Result, error)) (*converge.Result, error) {
	if there, err := k.follows(h); there || err != nil {
		return nil, err
	}
	st, err := k.state(h)
	if err != nil {
		return nil, err
	}
	res, err := apply(ctx, st)
	if err != nil {
		return res, err
	}
	return res, k.giveToken(h)
}

// follows says whether an agent that something else brought here follows the file.
func (k *Keep) follows(h host.Host) (bool, error) {
	own, err := KeepsFile(h)
	if err != nil || own {
		return false, err
	}
	info, err := ledger.Lstat(h, unitFile)
	if err != nil || info == nil {
		return false, err
	}
	ours, err := IsService(h)
	if err != nil {
		return false, err
	}
	o, err := config.ReadOptions(h)
	if err != nil {
		return false, err
	}
	if !ours || o.Sources.NodeConfig != k.File {
		return false, k.refused("the machine has an agent already, " + config.Unit + ", that does not follow " + k.File)
	}
	return true, k.isStrict(o)
}

// isStrict refuses options of somebody else that would have the agent fetch what this run
// does not.
func (k *Keep) isStrict(o *config.Options) error {
	if !k.RequireDigests || o.RequireDigests {
		return nil
	}
	return &exitcode.Error{Number: exitcode.Internal, During: "have the agent keep the node", At: contract.KeepField,
		Err:    errors.New(config.OptionsPath + " has the agent fetch what has no digest, and --require-digests forbids that"),
		Remedy: "Put \"requireDigests: true\" into " + config.OptionsPath + ", or artifacts.requireDigests into the document. The machine is a node all the same."}
}

func (k *Keep) refused(why string) error {
	return &exitcode.Error{Number: exitcode.Internal, During: "have the agent keep the node", At: contract.KeepField, Err: errors.New(why),
		Remedy: fmt.Sprintf("Put \"sources: {secret: false, nodeConfig: %s}\" into %s, or take away what is there (berth agent reset); "+
			"or take agent.keep out of the document. The machine is a node all the same.", k.File, config.OptionsPath)}
}

func (k *Keep) state(h host.Host) (*desired.State, error) {
	options, err := k.optionsFile(h)
	if err != nil {
		return nil, err
	}
	text, err := k.configuration()
	if err != nil {
		return nil, err
	}
	private := func(p string, text []byte) *desired.File {
		return &desired.File{Path: p, Content: desired.Text(string(text)), Mode: 0o600, Life: desired.Managed}
	}
	return Setup(h, &ledger.Reader{}, k.Program, config.BaseDir, options,
		// Without these the agent would make them, and nobody would know whose they are.
		&desired.Directory{Path: config.BaseDir, Mode: 0o755}, &desired.Directory{Path: config.CredentialsDir, Mode: 0o700},
		private(keepConfig(k.Version), text), private(config.MachineName, []byte(k.Node+"\n")))
}

func keepConfig(version string) string { return path.Join(config.BaseDir, "config-"+version+".yaml") }

func (k *Keep) configuration() ([]byte, error) {
	c := config.NodeAgent{APIVersion: config.APIVersion, Kind: config.Kind, APIServer: config.APIServer{Server: k.Server, CAFile: k.CAFile}}
	c.Controllers.OperatingSystemConfig.SecretName, c.Controllers.OperatingSystemConfig.KubernetesVersion = noSecret, k.Kubernetes
	text, err := yamltext.Marshal(c)
	if err == nil {
		_, _, err = config.Parse(keepConfig(k.Version), text)
	}
	if err != nil {
		return nil, fmt.Errorf("write the agent's configuration: %w", err)
	}
	return text, nil
}

// optionsFile are options by which the agent follows a file. Those of an operator stay as
// they are, and have to say the same.
func (k *Keep) optionsFile(h host.FS) (*desired.File, error) {
	text, err := optionsText(k.File, k.RequireDigests)
	if err != nil {
		return nil, err
	}
	out := &desired.File{Path: config.OptionsPath, Content: desired.Text(string(text)), Mode: 0o600, Life: desired.Managed}
	there, err := h.ReadFile(config.OptionsPath)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the agent's options: %w", err)
	}
	o, err := config.ParseOptions(config.OptionsPath, there)
	if err != nil {
		return nil, err
	}
	if was, err := optionsText(o.Sources.NodeConfig, o.RequireDigests); err == nil && string(was) == string(there) {
		return out, nil // those of an earlier join
	}
	if o.Sources.NodeConfig != k.File {
		return nil, k.refused(config.OptionsPath + " says other sources than " + k.File)
	}
	out.Life = desired.Seed
	return out, k.isStrict(o)
}

func optionsText(file string, requireDigests bool) ([]byte, error) {
	o := map[string]any{"sources": map[string]any{"secret": false, "nodeConfig": file}}
	if requireDigests {
		o["requireDigests"] = true
	}
	return yamltext.Marshal(o)
}

// giveToken lays the bootstrap token where the agent takes it away once it has its own
// certificate.
func (k *Keep) giveToken(h host.Host) error {
	if k.Token == nil {
		return nil
	}
	if serves, err := k.serves(h); err != nil || serves {
		return err
	}
	token, err := k.Token()
	if errors.Is(err, fs.ErrNotExist) { // it was taken away: the agent says what it lacks
		return nil
	}
	if err != nil {
		return fmt.Errorf("give the agent the bootstrap token: %w", err)
	}
	if have, missing := h.ReadFile(config.BootstrapToken); token == "" || missing == nil && string(bytes.TrimSpace(have)) == token.Reveal() {
		return nil
	}
	if err := host.WriteFile(h, config.BootstrapToken, []byte(token), host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("give the agent the bootstrap token: %w", err)
	}
	return nil
}

// serves says whether the agent has a certificate for this server that is in force.
func (k *Keep) serves(h host.Host) (bool, error) {
	c, err := kubeconfig.Read(h, config.Kubeconfig)
	if at, ok := errors.AsType[*fs.PathError](err); ok && !errors.Is(err, fs.ErrNotExist) {
		return false, at
	}
	o, optErr := config.ReadOptions(h)
	if err != nil || optErr != nil {
		return false, optErr
	}
	who := identity.Agent{Machine: k.Node, Group: o.Group}
	return identity.SameServer(c.Server, k.Server) &&
		identity.AgentProblem(converge.Credential{Certificate: c.Certificate, Key: c.Key}, who, h.Now()) == "", nil
}

// KeepsFile says whether the agent is there since a document in a file asked for it.
func KeepsFile(h host.Host) (bool, error) {
	led, err := (&ledger.Reader{}).Load(h)
	if err != nil {
		return false, err
	}
	return led.Entries[config.MachineName].Owns(desired.OwnerBerth), nil
}
