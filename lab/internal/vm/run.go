package vm

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Spawner starts a command (cmd.Start) inside the lab's network namespace.
// A nil Spawner starts it where the caller is.
type Spawner func(*exec.Cmd) error

func (s Spawner) start(cmd *exec.Cmd) error {
	if s == nil {
		return cmd.Start()
	}
	return s(cmd)
}

// run starts and waits; the error carries what the command printed.
func (s Spawner) run(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := s.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(out.String()))
}

func run(cmd *exec.Cmd) error { return Spawner(nil).run(cmd) }
