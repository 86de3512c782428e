package nodegpu

import (
	"context"
	"errors"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// container is the name of the one that installs the driver, mounts are the
// directories of the machine that it writes to: as published.
const container = "gpuinstall"

var mounts = []struct{ from, to string }{{"/opt/gpu", "/mnt/gpu"}, {"/opt/actions", "/mnt/actions"}}

// installs is how often the installer is tried, installing how long it may take to build
// the driver for the running kernel: as published. All that is of this unit has to fit
// into gpu.Budget, and a later try has what is left.
var installs = often{3, 10 * time.Second}

const installing = 10 * time.Minute

// install runs the image of the driver, which writes to the machine and builds the
// driver's modules. containerd has the image.
func (n Node) install(ctx context.Context) error {
	for _, m := range mounts {
		if _, err := host.MkdirAll(n.Host, m.from); err != nil {
			return err
		}
	}
	n.Say("installs the driver: " + n.Settings.Image)
	return installs.try(ctx, n.Host, n.installer)
}

func (n Node) installer(ctx context.Context) error {
	if err := n.clear(ctx); err != nil {
		return err
	}
	args := []string{"-n", "k8s.io", "run", "--privileged", "--rm", "--net-host", "--with-ns", "pid:/proc/1/ns/pid"}
	for _, m := range mounts {
		args = append(args, "--mount", "type=bind,src="+m.from+",dst="+m.to+",options=rbind")
	}
	return n.run(ctx, installing, "ctr", append(args, n.Settings.Image, container, "/entrypoint.sh", "install")...)
}

// clear takes away what a run that was killed has left, so that its name is free: a
// snapshot is there before its container is. That there is nothing is no error.
func (n Node) clear(ctx context.Context) error {
	for _, what := range [][]string{{"task", "rm", "-f", container}, {"container", "rm", container}, {"snapshot", "rm", container}} {
		err := n.run(ctx, time.Minute, "ctr", append([]string{"-n", "k8s.io"}, what...)...)
		if _, ended := errors.AsType[*host.ExitError](err); err != nil && !ended {
			return err
		}
	}
	return nil
}
