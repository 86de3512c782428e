// Package credential keeps the agent's own certificate: the first one comes of a
// bootstrap token, each later one of the one before it, while the agent runs. From
// the same token kubelet gets what it needs for its own first certificate.
package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// silence is that of the agent's connection, which lives for weeks and would wake the
// machine for each question.
const silence = 30 * time.Second

// Issuer obtains a certificate for a machine's agent.
type Issuer interface {
	IssueForAgent(ctx context.Context, a identity.Agent, access apiserver.Access) (converge.Credential, error)
}

// Keeper keeps the credential of one agent. All exported fields but Given are required.
type Keeper struct {
	Host   host.Host
	Issuer Issuer
	// Agent is whom the certificate is for.
	Agent  identity.Agent
	Server string
	// CAFile holds the cluster's CA.
	CAFile string
	// Given is a kubeconfig that stands in for a certificate of the agent's own; "" is none.
	Given string
	// Random is between 0 and 1: the certificates of a pool end together, and are not
	// renewed together.
	Random float64
	// failing: the last try to renew the certificate failed. A bootstrap token that is
	// there then is for the next one.
	failing atomic.Bool
	doubts  chan struct{}
}

// New is the keeper of a configuration; the machine's name is the published file's.
func New(h host.Host, i Issuer, c *config.NodeAgent, group string, random float64) (*Keeper, error) {
	name, err := h.ReadFile(config.MachineName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the machine's name: %w", err)
	}
	k := &Keeper{Host: h, Issuer: i, Agent: identity.Agent{Machine: string(bytes.TrimSpace(name)), Group: group}, Server: c.APIServer.Server, CAFile: c.APIServer.CAFile, Given: c.ClientConnection.Kubeconfig, Random: random,
		doubts: make(chan struct{}, 1)}
	if k.Agent.Machine == "" && k.Given == "" {
		return nil, &exitcode.Error{Number: exitcode.Credential, Err: fmt.Errorf("%s is missing or empty", config.MachineName),
			Remedy: "Write the machine's name to it: the agent's certificate is for that name."}
	}
	return k, nil
}

// Access is what the agent shows to the API server: the certificate on the machine
// while it serves, else a new one; or what a given kubeconfig has.
func (k *Keeper) Access(ctx context.Context) (apiserver.Access, error) {
	if k.Given != "" {
		return k.given()
	}
	a, problem, err := k.kept()
	if err != nil || problem == "" {
		return a, err
	}
	return k.first(ctx, a, problem)
}

// first obtains a certificate with the bootstrap token; problem is that of the one
// that is there.
func (k *Keeper) first(ctx context.Context, a apiserver.Access, problem string) (apiserver.Access, error) {
	a.Certificate, a.Key = nil, nil
	token, err := k.Host.ReadFile(config.BootstrapToken)
	if errors.Is(err, fs.ErrNotExist) {
		return a, &exitcode.Error{Number: exitcode.Credential,
			Err:    fmt.Errorf("%s: %s, and there is no bootstrap token", config.Kubeconfig, problem),
			Remedy: "Write a bootstrap token of the cluster to " + config.BootstrapToken + " (kubeadm token create)."}
	}
	if err != nil {
		return a, fmt.Errorf("read the bootstrap token: %w", err)
	}
	a.Token = desired.Secret(bytes.TrimSpace(token))
	return k.renew(ctx, a)
}

// kept is the access that is on the machine, and why it does not serve.
func (k *Keeper) kept() (a apiserver.Access, problem string, err error) {
	ca, err := k.Host.ReadFile(k.CAFile)
	if err != nil {
		return a, "", fmt.Errorf("read the cluster's CA: %w", err)
	}
	a = apiserver.Access{Server: k.Server, CA: ca, Silence: silence}
	c, err := kubeconfig.Read(k.Host, config.Kubeconfig)
	if at, ok := errors.AsType[*fs.PathError](err); ok && !errors.Is(err, fs.ErrNotExist) {
		return a, "", at
	}
	if err != nil {
		return a, err.Error(), nil
	}
	a.Certificate, a.Key = c.Certificate, c.Key
	return a, k.problem(a), nil
}

// problem is why the certificate of an access does not serve; "" if it does.
func (k *Keeper) problem(a apiserver.Access) string {
	return identity.AgentProblem(converge.Credential{Certificate: a.Certificate, Key: a.Key}, k.Agent, k.Host.Now())
}

// renew obtains a certificate with what access shows, and keeps it.
func (k *Keeper) renew(ctx context.Context, access apiserver.Access) (apiserver.Access, error) {
	cred, err := k.Issuer.IssueForAgent(ctx, k.Agent, access)
	if err != nil {
		return access, err
	}
	access.Token, access.Certificate, access.Key = "", cred.Certificate, cred.Key
	text, err := (&kubeconfig.Config{Server: k.Server, CA: access.CA, Certificate: cred.Certificate, Key: cred.Key}).Text()
	if err != nil {
		return access, err
	}
	return access, writePrivate(k.Host, config.Kubeconfig, text)
}

func writePrivate(h host.FS, p string, text []byte) error {
	if _, err := host.MkdirAll(h, path.Dir(p)); err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	if err := host.WriteFile(h, p, text, host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}
