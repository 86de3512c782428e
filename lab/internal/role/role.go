// Package role lets the running program start itself again as one of the lab's
// background processes, so that tests need no second binary.
package role

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

const (
	nameVar = "BERTH_LAB_ROLE"
	argsVar = "BERTH_LAB_ROLE_ARGS"
)

// Func is a background process: it gets its arguments as JSON.
type Func func(args []byte) error

// Run becomes the role named in the environment, if there is one, and does not
// come back then.
func Run(roles map[string]Func) {
	name := os.Getenv(nameVar)
	if name == "" {
		return
	}
	args := os.Getenv(argsVar)
	os.Unsetenv(nameVar)
	os.Unsetenv(argsVar)
	f, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown role %q\n", name)
		os.Exit(2)
	}
	if err := f([]byte(args)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Command starts this program as a role, in a session of its own. Its output
// goes to logFile.
func Command(name string, args any, logFile string) (*exec.Cmd, error) {
	b, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode arguments of %s: %w", name, err)
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"berth-lab-" + name}
	cmd.Env = append(os.Environ(), nameVar+"="+name, argsVar+"="+string(b))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}
