// Package build compiles the programs of the lab from Go modules.
package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// target is one `go build` of one or more packages with the same flags.
type target struct {
	out      string // below the destination; a trailing slash puts each program there under its own name
	cgo      bool
	tags     string
	ldflags  string
	packages []string
}

func (t target) args(dest string) []string {
	args := []string{"build", "-trimpath"}
	if t.tags != "" {
		args = append(args, "-tags", t.tags)
	}
	out := filepath.Join(dest, t.out)
	if t.out == "" || strings.HasSuffix(t.out, "/") {
		out += "/"
	}
	args = append(args, "-ldflags", t.ldflags, "-o", out)
	return append(args, t.packages...)
}

// run compiles t in the module at dir into dest.
func (t target) run(ctx context.Context, dir, dest string) error {
	if t.isDir() {
		if err := os.MkdirAll(filepath.Join(dest, t.out), 0o755); err != nil {
			return fmt.Errorf("create build output: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, "go", t.args(dest)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+map[bool]string{true: "1", false: "0"}[t.cgo], "GOWORK=off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(t.packages, " "), err, out.String())
	}
	return nil
}

func (t target) isDir() bool { return t.out == "" || strings.HasSuffix(t.out, "/") }

// moduleVersion is the version of a module in the build list of the module at dir.
func moduleVersion(ctx context.Context, dir, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
