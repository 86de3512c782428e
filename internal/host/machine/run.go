package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

// outputDelay is how long output is waited for after a program has ended: one
// that it left behind may hold the pipe.
const outputDelay = 2 * time.Second

// processes runs programs of this machine, for as long as the bound where nobody
// says how long.
type processes struct{ bound time.Duration }

// Run implements host.Runner. When ctx ends, the program and all that it started
// in its process group are killed, and the error is that of ctx.
func (ps processes) Run(ctx context.Context, c host.Command) (host.Output, error) {
	program, err := lookPath(c.Path)
	if err != nil {
		return host.Output{}, pathError("fork/exec", c.Path, err)
	}
	ctx, cancel := bounded(ctx, ps.bound)
	defer cancel()
	stdout, stderr := tail{of: c}, tail{of: c}
	cmd := exec.CommandContext(ctx, program, c.Args...)
	cmd.Env = append([]string{"PATH=" + host.SearchPath}, c.Env...)
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = outputDelay
	err = cmd.Run()
	out := host.Output{Stdout: stdout.bytes(), Stderr: stderr.bytes()}
	if cmd.ProcessState != nil {
		out.ExitCode = exitCode(cmd.ProcessState)
	}
	return out, outcome(ctx, c, out, err)
}

func outcome(ctx context.Context, c host.Command, out host.Output, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", c.Path, endOf(ctx))
	case errors.As(err, &exit):
		return &host.ExitError{Command: c, Output: out}
	}
	return err
}

// exitCode is 128 and the signal's number for a program that a signal ended, as
// shells count.
func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

func killGroup(p *os.Process) error {
	err := unix.Kill(-p.Pid, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// lookPath finds a program in the fixed search path, not in that of the caller.
func lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for dir := range strings.SplitSeq(host.SearchPath, ":") {
		p := path.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", unix.ENOENT
}

// tail is a stream of a command of which only the end is kept.
type tail struct {
	of  host.Command
	buf []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if kept := t.bytes(); len(t.buf) > 2*len(kept) {
		t.buf = append(t.buf[:0], kept...)
	}
	return len(p), nil
}

func (t *tail) bytes() []byte { return t.of.Tail(t.buf) }
