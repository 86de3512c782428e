package join

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/podnet"
	"github.com/berth-dev/berth/internal/join/drained"
)

const (
	// tasksDir has a directory for each container that has not been taken away.
	tasksDir = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
	// grace is what containers of static pods and DaemonSets have to end by themselves.
	grace = 5 * time.Second
	// atOnce is how many sandboxes end at the same time.
	atOnce = 8
)

// stopAgent ends what would change the machine or its Node meanwhile.
func (l *leave) stopAgent(ctx context.Context) {
	l.stop(ctx, l.AgentUnit)
	l.failed("end "+drained.Timer, drained.Disarm(ctx, l.Host))
	l.failed("end "+trial.RevertTimer, trial.EndTimer(ctx, l.Host))
}

func (l *leave) stopKubelet(ctx context.Context) { l.stop(ctx, kubelet.Unit) }

// endSandboxes has the runtime take all pods away: it alone knows their network and
// their mounts. A runtime that does not run is started where something is left of it.
func (l *leave) endSandboxes(ctx context.Context) {
	if !l.running(ctx, containerd.Unit) {
		if left, err := l.Host.ReadDir(tasksDir); err != nil || len(left) == 0 {
			return
		}
		if err := l.Host.StartUnit(ctx, containerd.Unit); err != nil {
			l.failed("start the container runtime to end pods", err)
			return
		}
	}
	r, err := l.Runtime(ctx)
	if err != nil {
		l.failed("end pods", err)
		return
	}
	defer r.Close()
	boxes, err := r.Sandboxes(ctx)
	if err != nil {
		l.failed("end pods", err)
		return
	}
	errs := make([]error, len(boxes))
	g := errgroup.Group{}
	g.SetLimit(atOnce)
	for i, s := range boxes {
		g.Go(func() error {
			errs[i] = r.Remove(ctx, s.ID, grace)
			return nil
		})
	}
	_ = g.Wait()
	l.tell(boxes, errs)
}

func (l *leave) tell(boxes []cri.Sandbox, errs []error) {
	for i, s := range boxes {
		if errs[i] != nil {
			l.failed("end pod "+s.String(), errs[i])
		} else if s.Ready {
			l.Say("ended pod " + s.String())
		}
	}
}

// stopRuntime stops the runtime unless it ran before berth came: then the engine has it
// run as it did.
func (l *leave) stopRuntime(ctx context.Context) {
	e, ok := l.led.Entries[string(desired.UnitID(containerd.Unit))]
	if ok && !slices.ContainsFunc(l.others, e.Owns) && !l.ranBefore(containerd.Unit) {
		l.stop(ctx, containerd.Unit)
	}
}

// clearNetwork takes away what pods had of it. What was there before stays; where that is
// not known, names alone say what pods had.
func (l *leave) clearNetwork(ctx context.Context) {
	before := podnet.Before{Links: l.led.Found[linksDir].Names, Filter: map[string]bool{}}
	for _, name := range l.led.Found[ledger.FilterFound].Names {
		before.Filter[name] = true
	}
	removed, err := l.Network.Remove(ctx, before)
	for _, r := range removed {
		l.Say("removed " + r)
	}
	l.failed("clear the network", err)
	left, err := l.Network.Foreign(ctx, before)
	for _, s := range left {
		l.stay(s)
	}
	l.failed("look for what the cluster's network left", err)
}

const linksDir = "/sys/class/net"

// podMounts begin the paths below which kubelet and the runtime mount for pods.
// Containers of other clients of containerd are in other namespaces than k8s.io.
var podMounts = []string{
	"/var/lib/kubelet/pods/", "/var/lib/kubelet/plugins/", tasksDir + "/", "/run/containerd/io.containerd.grpc.v1.cri/", "/run/netns/cni-",
}

// unmountAll takes away what pods had mounted, the last first. What is mounted elsewhere,
// and what was mounted before berth came, is somebody else's.
func (l *leave) unmountAll(ctx context.Context) {
	mounts, err := l.Host.Mounts(ctx)
	if err != nil {
		l.failed("list mounts", err)
		return
	}
	theirs := l.led.Found[ledger.MountsFound].Names
	for _, m := range slices.Backward(mounts) {
		if slices.Contains(theirs, m.Target) || !ofPods(m.Target) {
			continue
		}
		if err := l.Host.Unmount(ctx, m.Target); err != nil {
			l.failed("unmount "+m.Target, err)
			continue
		}
		l.Say("unmounted " + m.Target)
		if strings.HasPrefix(m.Target, "/run/netns/") {
			l.failed("remove "+m.Target, ledger.RemoveIfThere(l.Host, m.Target))
		}
	}
}

// offTempDisk has the service give kubelet's directory back, so that what kubelet made
// there goes from the disk of the system.
func (l *leave) offTempDisk(ctx context.Context) {
	e, ok := l.led.Entries[string(desired.UnitID(tempdisk.Unit))]
	if ok && !slices.ContainsFunc(l.others, e.Owns) {
		l.stop(ctx, tempdisk.Unit)
	}
}

func ofPods(target string) bool {
	return slices.ContainsFunc(podMounts, func(p string) bool { return strings.HasPrefix(target, p) })
}

// endGroups ends the slices and control groups of pods.
func (l *leave) endGroups(ctx context.Context) {
	units, err := l.Host.ListUnits(ctx, "kubepods*.slice")
	if err != nil {
		l.failed("list slices", ignoreNoSystemd(err))
	}
	for _, u := range slices.Backward(units) { // those inside others come after them
		if u.ActiveState == "active" {
			l.stop(ctx, u.Name)
		}
	}
	for _, root := range l.groupRoots() {
		for _, name := range []string{"kubepods.slice", "kubepods"} {
			l.failed("remove control group "+path.Join(root, name), l.removeGroup(path.Join(root, name)))
		}
	}
}

const groups = "/sys/fs/cgroup"

// groupRoots are the hierarchies of control groups: one, and with version 1 one for each
// controller.
func (l *leave) groupRoots() []string {
	roots := []string{groups}
	names, err := l.Host.ReadDir(groups)
	if err != nil {
		return nil
	}
	for _, name := range names {
		p := path.Join(groups, name)
		if info, err := l.Host.Lstat(p); err == nil && info.Mode.IsDir() {
			roots = append(roots, p)
		}
	}
	return roots
}

// removeGroup removes a control group with those inside it. The files in one are the
// kernel's and go with it.
func (l *leave) removeGroup(dir string) error {
	names, err := l.Host.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		p := path.Join(dir, name)
		if info, err := l.Host.Lstat(p); err == nil && info.Mode.IsDir() {
			if err := l.removeGroup(p); err != nil {
				return err
			}
		}
	}
	return ledger.RemoveIfThere(l.Host, dir)
}
