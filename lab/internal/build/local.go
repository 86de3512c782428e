package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Berth compiles ./cmd/berth of the main module at root into dest. It reports
// false if the module has no such command.
func Berth(ctx context.Context, root, dest string) (bool, error) {
	if _, err := os.Stat(filepath.Join(root, "cmd", "berth", "main.go")); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	t := target{out: "berth", tags: "grpcnotrace", ldflags: "-s -w", packages: []string{"./cmd/berth"}} // as make build
	return true, t.run(ctx, root, dest)
}

// Pause compiles the sandbox container's only program into dest.
func Pause(ctx context.Context, lab, dest string) error {
	t := target{out: "pause", ldflags: "-s -w", packages: []string{"./images/pause"}}
	return t.run(ctx, lab, dest)
}

// Workload compiles the program of the lab's pods into dest.
func Workload(ctx context.Context, lab, dest string) error {
	t := target{out: "workload", ldflags: "-s -w", packages: []string{"./images/workload"}}
	return t.run(ctx, lab, dest)
}

// Nothing compiles the program that does nothing into dest.
func Nothing(ctx context.Context, lab, dest string) error {
	t := target{out: "nothing", ldflags: "-s -w", packages: []string{"./images/nothing"}}
	return t.run(ctx, lab, dest)
}

// Root finds the main module's directory: the nearest parent of the working
// directory, or of $BERTH_ROOT if set, whose go.mod is berth's.
func Root() (string, error) {
	dir, err := start()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		b, err := os.ReadFile(filepath.Join(d, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module github.com/berth-dev/berth\n") {
			return d, nil
		}
		if d == "/" {
			return "", fmt.Errorf("find berth's repository above %s: not found; set BERTH_ROOT", dir)
		}
	}
}

func start() (string, error) {
	if d := os.Getenv("BERTH_ROOT"); d != "" {
		return d, nil
	}
	return os.Getwd()
}
