package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Result is what a command in the guest did. The agent keeps at most 16 MiB of
// each stream; Truncated says that there was more.
type Result struct {
	ExitCode  int
	Signal    int // nonzero: the command was killed by it
	Stdout    []byte
	Stderr    []byte
	Truncated bool
}

type execStatus struct {
	Exited       bool   `json:"exited"`
	ExitCode     int    `json:"exitcode"`
	Signal       int    `json:"signal"`
	Out          []byte `json:"out-data"`
	Err          []byte `json:"err-data"`
	OutTruncated bool   `json:"out-truncated"`
	ErrTruncated bool   `json:"err-truncated"`
}

// Exec runs a command in the guest as root and waits for its end. A nonzero
// exit code is no error. When ctx ends first, the command goes on.
func (v *VM) Exec(ctx context.Context, stdin []byte, argv ...string) (Result, error) {
	args := map[string]any{"path": argv[0], "arg": argv[1:], "capture-output": true}
	if stdin != nil {
		args["input-data"] = stdin
	}
	var started struct {
		PID int `json:"pid"`
	}
	if err := v.agent(ctx, "guest-exec", args, &started); err != nil {
		return Result{}, fmt.Errorf("exec %s: %w", argv[0], err)
	}
	r, err := v.await(ctx, started.PID)
	if err != nil {
		return Result{}, fmt.Errorf("exec %s: %w", argv[0], err)
	}
	return r, nil
}

// await polls, since the protocol has no other way. It leaves the agent free
// for others meanwhile. Each question costs the guest some 50 ms of processor
// time.
func (v *VM) await(ctx context.Context, pid int) (Result, error) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		var s execStatus
		if err := v.agent(ctx, "guest-exec-status", map[string]int{"pid": pid}, &s); err != nil {
			return Result{}, err
		}
		if s.Exited {
			return Result{s.ExitCode, s.Signal, s.Out, s.Err, s.OutTruncated || s.ErrTruncated}, nil
		}
		select {
		case <-ctx.Done():
			return Result{}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Output runs a command and returns its standard output without the last line
// break. Any other exit code than 0 is an error with what it said.
func (v *VM) Output(ctx context.Context, argv ...string) (string, error) {
	r, err := v.Exec(ctx, nil, argv...)
	if err != nil {
		return "", err
	}
	if r.ExitCode != 0 || r.Signal != 0 {
		return "", fmt.Errorf("%s: exit code %d, signal %d: %s%s", strings.Join(argv, " "), r.ExitCode, r.Signal, r.Stdout, r.Stderr)
	}
	return strings.TrimSuffix(string(r.Stdout), "\n"), nil
}

// ReadFile reads a file of the guest.
func (v *VM) ReadFile(ctx context.Context, path string) ([]byte, error) {
	handle, err := v.openGuest(ctx, path, "r")
	if err != nil {
		return nil, err
	}
	defer func() { _ = v.closeGuest(ctx, handle) }()
	var data bytes.Buffer
	for {
		var part struct {
			Data []byte `json:"buf-b64"`
			EOF  bool   `json:"eof"`
		}
		err := v.agent(ctx, "guest-file-read", map[string]int{"handle": handle, "count": chunk}, &part)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		data.Write(part.Data)
		if part.EOF {
			return data.Bytes(), nil
		}
	}
}

// WriteFile writes a file of the guest, then sets its mode. It does not sync.
func (v *VM) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	handle, err := v.openGuest(ctx, path, "w")
	if err != nil {
		return err
	}
	for len(data) > 0 {
		n := min(len(data), chunk)
		err := v.agent(ctx, "guest-file-write", map[string]any{"handle": handle, "buf-b64": data[:n]}, nil)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		data = data[n:]
	}
	if err := v.closeGuest(ctx, handle); err != nil {
		return err
	}
	_, err = v.Output(ctx, "chmod", fmt.Sprintf("%o", mode.Perm()), path)
	return err
}

// chunk stays far below what the agent takes in one message.
const chunk = 1 << 20

func (v *VM) openGuest(ctx context.Context, path, mode string) (handle int, err error) {
	err = v.agent(ctx, "guest-file-open", map[string]string{"path": path, "mode": mode}, &handle)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", path, err)
	}
	return handle, nil
}

func (v *VM) closeGuest(ctx context.Context, handle int) error {
	return v.agent(ctx, "guest-file-close", map[string]int{"handle": handle}, nil)
}

// BootID tells one boot of the guest's kernel from another.
func (v *VM) BootID(ctx context.Context) (string, error) {
	return v.Output(ctx, "cat", "/proc/sys/kernel/random/boot_id")
}

// Reboot asks the guest to restart in the orderly way and waits for the agent
// of the next boot.
func (v *VM) Reboot(ctx context.Context) error {
	n := v.Resets()
	r, err := v.Exec(ctx, nil, "systemctl", "--no-block", "reboot")
	if err == nil && r.ExitCode != 0 {
		return fmt.Errorf("reboot: exit code %d: %s", r.ExitCode, r.Stderr)
	}
	// No answer is no failure: a guest that goes down takes its agent along.
	if reset := v.WaitReset(ctx, n); reset != nil {
		return errors.Join(err, reset)
	}
	return v.WaitAgent(ctx)
}
