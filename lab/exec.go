package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab/internal/proc"
)

// Result is what a command left.
type Result struct {
	Stdout, Stderr []byte
	Code           int
}

// Exec runs a command inside the node, as root, in PID 1's namespaces. A
// non-zero exit code is no error.
func (n *Node) Exec(ctx context.Context, args ...string) (Result, error) {
	return n.ExecInput(ctx, nil, args...)
}

// ExecInput is Exec with standard input.
func (n *Node) ExecInput(ctx context.Context, input []byte, args ...string) (Result, error) {
	cmd, err := n.spec.Command(ctx, args...)
	if err != nil {
		return Result{}, fmt.Errorf("run %s in %s: %w", args[0], n.Name, err)
	}
	cmd.Stdin = bytes.NewReader(input)
	return collect(cmd)
}

func collect(cmd *exec.Cmd) (Result, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A daemon that inherits the output must not hold the call.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	r := Result{stdout.Bytes(), stderr.Bytes(), 0}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.Code = exit.ExitCode()
		return r, nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return r, fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	return r, nil
}

// Run is Exec for commands that must succeed; the error carries their output.
func (n *Node) Run(ctx context.Context, args ...string) error {
	_, err := n.Output(ctx, args...)
	return err
}

// Output is Run that returns standard output.
func (n *Node) Output(ctx context.Context, args ...string) (string, error) {
	r, err := n.Exec(ctx, args...)
	if err != nil {
		return "", err
	}
	if r.Code != 0 {
		return string(r.Stdout), fmt.Errorf("%s in %s: exit code %d\n%s%s", strings.Join(args, " "), n.Name, r.Code, r.Stdout, r.Stderr)
	}
	return string(r.Stdout), nil
}

// Command prepares a command inside the node, for callers that need its
// streams or want to leave it running.
func (n *Node) Command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	return n.spec.Command(ctx, args...)
}

// WaitBooted waits until systemd has started everything, and returns its
// state: "running" or "degraded".
func (n *Node) WaitBooted(ctx context.Context) (string, error) {
	var state string
	err := proc.Poll(ctx, "boot of "+n.Name, func() (bool, error) {
		r, err := n.Exec(ctx, "systemctl", "is-system-running", "--wait")
		if err != nil {
			return false, err
		}
		state = strings.TrimSpace(string(r.Stdout))
		return state == "running" || state == "degraded", nil
	})
	return state, err
}

// WaitFor runs a command inside the node until it succeeds.
func (n *Node) WaitFor(ctx context.Context, args ...string) error {
	return proc.Poll(ctx, strings.Join(args, " ")+" in "+n.Name, func() (bool, error) {
		err := n.Run(ctx, args...)
		return err == nil, err
	})
}

// Tail is the end of the node's journal, for messages of tests. The kernel's
// messages are left out: they are the host's.
func (n *Node) Tail(ctx context.Context, lines int) string {
	out, err := n.Output(ctx, "journalctl", "--no-pager", "-o", "short-monotonic", "-n", fmt.Sprint(lines),
		"_TRANSPORT=journal", "_TRANSPORT=stdout", "_TRANSPORT=syslog")
	if err != nil {
		return err.Error()
	}
	return out
}
