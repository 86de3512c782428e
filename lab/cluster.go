package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab/internal/controlplane"
	"github.com/berth-dev/berth/lab/internal/image"
	"github.com/berth-dev/berth/lab/internal/kube"
	corev1 "k8s.io/api/core/v1"
)

// WaitNodeReady waits until a node is Ready. Give ctx a deadline.
func (l *Lab) WaitNodeReady(ctx context.Context, name string) (*corev1.Node, error) {
	return l.WaitNode(ctx, name, kube.Ready)
}

// WaitNode watches a node until ok accepts it.
func (l *Lab) WaitNode(ctx context.Context, name string, ok func(*corev1.Node) bool) (*corev1.Node, error) {
	return kube.AwaitNode(ctx, l.client, name, ok)
}

// AddToken makes a bootstrap token of the form "id.secret" (6 and 16
// characters of a-z0-9). A zero expiry means none; one in the past makes a
// token that the API server refuses.
func (l *Lab) AddToken(ctx context.Context, token string, expiry time.Time) error {
	id, secret, ok := strings.Cut(token, ".")
	if !ok {
		return errors.New("add bootstrap token: want id.secret")
	}
	return kube.AddToken(ctx, l.client, id, secret, expiry, false)
}

// AddHeldToken makes a bootstrap token with which a machine may ask for a
// certificate, but whose requests nobody approves.
func (l *Lab) AddHeldToken(ctx context.Context, token string) error {
	id, secret, _ := strings.Cut(token, ".")
	return kube.AddToken(ctx, l.client, id, secret, time.Time{}, true)
}

// DeleteToken removes a bootstrap token.
func (l *Lab) DeleteToken(ctx context.Context, token string) error {
	id, _, _ := strings.Cut(token, ".")
	return kube.DeleteToken(ctx, l.client, id)
}

// KubectlCommand prepares kubectl as the administrator.
func (l *Lab) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := l.ns.Command(ctx, filepath.Join(l.programs.Kubernetes, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig())
	return cmd
}

// Kubectl runs kubectl as the administrator.
func (l *Lab) Kubectl(ctx context.Context, args ...string) (Result, error) {
	return collect(l.KubectlCommand(ctx, args...))
}

// Command prepares a command of the host in the lab's network namespace.
func (l *Lab) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return l.ns.Command(ctx, name, args...)
}

// Rebuild compiles berth anew. Nodes that are made from now on have it.
func (l *Lab) Rebuild(ctx context.Context) error {
	dir, err := image.Berth(ctx, l.cache, l.root)
	if err != nil {
		return fmt.Errorf("build berth: %w", err)
	}
	l.mu.Lock()
	l.berth = dir
	l.mu.Unlock()
	return nil
}

// HasBerth reports whether nodes get berth: false while the repository has no
// cmd/berth.
func (l *Lab) HasBerth() bool { return l.berth != "" }

// Berth is the path of the program that nodes get; it also runs on the host.
func (l *Lab) Berth() string { return filepath.Join(l.berth, "usr/local/bin/berth") }

// AuditLog is the path of the log of what Config.AuditGroup asks the API server for:
// an audit.k8s.io/v1 Event for each line.
func (l *Lab) AuditLog() string { return l.plane.AuditLog() }

// Issuer is somebody besides the cluster whose tokens the API server takes.
type Issuer = controlplane.Issuer

// Trust has the API server take tokens of these issuers and of no others, within a
// moment.
func (l *Lab) Trust(issuers ...Issuer) error { return l.plane.Trust(issuers...) }

// Ready waits until the API server says that it is ready.
func (l *Lab) Ready(ctx context.Context) error { return l.plane.AwaitReady(ctx) }
