// Package nodegpu is what a node does at each boot before its GPUs are used: it sees
// that their driver is there, runs, and answers.
package nodegpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// ErrNoGPU is a machine that has none.
var ErrNoGPU = errors.New("the machine has no NVIDIA GPU")

// Node is the machine, and what its GPUs are to be.
type Node struct {
	Host     host.Host
	Settings gpu.Settings
	// Say tells of what takes long.
	Say func(string)
}

// Prepare makes the GPUs ready as the machine's settings say.
func Prepare(ctx context.Context, h host.Host, say func(string)) error {
	text, err := h.ReadFile(gpu.SettingsFile)
	if err != nil {
		return fmt.Errorf("read GPU settings: %w", err)
	}
	s, err := gpu.Read(text)
	if err != nil {
		return err
	}
	return Node{Host: h, Settings: s, Say: say}.Prepare(ctx)
}

// errBudget ends whatever goes on when the time for all of it is over.
var errBudget = fmt.Errorf("nothing is left of the %.0f minutes that the GPUs may take in all", gpu.Budget.Minutes())

// Prepare makes the GPUs ready for kubelet within gpu.Budget: what comes later, and each
// try of it, has what is left of that. Its errors carry their codes.
func (n Node) Prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gpu.Budget, errBudget)
	defer cancel()
	if err := Await(ctx, n.Host, gpu.Appears); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{n.driver, n.fabric, n.partitions} {
		if err := step(ctx); err != nil {
			return coded(err)
		}
	}
	return nil
}

// coded gives the end of the budget a code where the step that it ended has none.
func coded(err error) error {
	if errors.Is(err, errBudget) && exitcode.Known(err) == 0 {
		return failed("make the GPUs ready", err)
	}
	return err
}

// driver sees to a driver that answers. One that is loaded, and of the version that is
// wanted, is not installed again.
func (n Node) driver(ctx context.Context) error {
	if !n.Settings.Install {
		return n.brought(ctx)
	}
	if n.load(ctx) == nil && n.wanted() {
		return n.answers(ctx)
	}
	if n.Settings.Image == "" {
		return &exitcode.Error{Number: exitcode.GPUDecision,
			Err: fmt.Errorf("%s names no image of the driver %s, which %s takes", gpu.ComponentsFile, n.Settings.Driver, n.Settings.Size)}
	}
	if err := n.install(ctx); err != nil {
		return failed("install the driver", err)
	}
	if err := patient(ctx, n.Host, n.load); err != nil {
		return failed("load the driver", err)
	}
	if !n.wanted() {
		return failed("load the driver", fmt.Errorf("version %s runs still, %s is installed: restart the machine", n.version(), n.Settings.Version))
	}
	if err := n.run(ctx, time.Minute, "ldconfig"); err != nil {
		return failed("find the driver's libraries", err)
	}
	return n.answers(ctx)
}

// brought sees to the image's own driver, which has the time of one that has just been
// installed: nobody installs it again.
func (n Node) brought(ctx context.Context) error {
	err := patient(ctx, n.Host, n.load)
	switch {
	case ctx.Err() != nil:
		return err
	case err == nil && n.version() != "":
		return n.answers(ctx)
	case err == nil:
		err = errors.New("no module of it is there")
	}
	return &exitcode.Error{Number: exitcode.GPUDriver, During: "look at the driver",
		Err:    fmt.Errorf("the image's driver does not load, and none is to be installed: %w", err),
		Remedy: "Put the driver into the image; with gpu_config.config_gpu_driver berth installs it on Ubuntu."}
}

func failed(what string, err error) error {
	return &exitcode.Error{Number: exitcode.GPUDriver, During: what, Err: err}
}

// load loads the driver's modules and makes its device nodes.
func (n Node) load(ctx context.Context) error {
	return n.run(ctx, 25*time.Second, "nvidia-modprobe", "-u", "-c0")
}

// version is that of the driver that runs; "" where none does.
func (n Node) version() string {
	b, err := n.Host.ReadFile("/sys/module/nvidia/version")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// wanted says whether the driver that runs is the one to be installed.
func (n Node) wanted() bool {
	v := n.version()
	return v != "" && (n.Settings.Version == "" || v == n.Settings.Version)
}

// corrupted is what nvidia-smi says of a GPU whose own memory is broken.
const corrupted = "infoROM is corrupted"

// answers has the driver tell of its GPUs.
func (n Node) answers(ctx context.Context) error {
	err := patient(ctx, n.Host, func(ctx context.Context) error { return n.run(ctx, 30*time.Second, "nvidia-smi") })
	if exit, ok := errors.AsType[*host.ExitError](err); ok && strings.Contains(string(exit.Output.Stdout)+string(exit.Output.Stderr), corrupted) {
		return &exitcode.Error{Number: exitcode.GPUInfoROM, During: "ask the driver", Err: err}
	}
	if err != nil {
		return failed("ask the driver", err)
	}
	return nil
}

// fabric starts what trains the switch between GPUs; it came with the driver.
func (n Node) fabric(ctx context.Context) error {
	if !n.Settings.Fabric {
		return nil
	}
	err := n.Host.StartUnit(ctx, gpu.FabricManager)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return failed("start "+gpu.FabricManager, err)
}

// often is how often something is tried, with which pause between.
type often struct {
	tries int
	pause time.Duration
}

// asked is how often a driver is asked that has just been loaded.
var asked = often{24, 5 * time.Second}

// patient asks until there is an answer.
func patient(ctx context.Context, h host.Host, ask func(context.Context) error) error {
	return asked.try(ctx, h, ask)
}

// try tries until it succeeds. A program that is not there is not tried again.
func (o often) try(ctx context.Context, h host.Host, attempt func(context.Context) error) error {
	var last error
	for n := 1; ; n++ {
		err := attempt(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return o.over(ctx, n, last)
		case n == o.tries, errors.Is(err, fs.ErrNotExist):
			return err
		}
		last = err
		if h.Sleep(ctx, o.pause) != nil {
			return o.over(ctx, n+1, last)
		}
	}
}

// over is why try n was the last one, with what the one before it said.
func (o often) over(ctx context.Context, n int, last error) error {
	err := fmt.Errorf("at try %d of %d: %w", n, o.tries, context.Cause(ctx))
	if last != nil {
		err = fmt.Errorf("%w; the one before: %w", err, last)
	}
	return err
}

func (n Node) run(ctx context.Context, limit time.Duration, name string, args ...string) error {
	_, err := n.output(ctx, limit, name, args...)
	return err
}

// output is what a program says that has no more time than limit. Of one that was ended
// the error says why.
func (n Node) output(ctx context.Context, limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s had not ended after %s", name, limit))
	defer cancel()
	out, err := n.Host.Run(ctx, host.Command{Path: name, Args: args})
	if err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return string(out.Stdout), err
}
