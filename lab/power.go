package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/lab/internal/proc"
	"github.com/berth-dev/berth/lab/internal/state"
)

// Start boots a node that does not run.
func (n *Node) Start(ctx context.Context) error {
	if err := n.spec.Mount(n.rec.Lowers); err != nil {
		return err
	}
	return n.spec.Start(ctx)
}

// Stop powers the node off as its operator would.
func (n *Node) Stop(ctx context.Context) error { return n.spec.Stop(ctx) }

// Crash takes the node's power. What its programs wrote is on the disk, since
// the host's kernel lives on.
func (n *Node) Crash(ctx context.Context) error { return n.spec.Crash(ctx) }

// Running reports whether the node's PID 1 runs.
func (n *Node) Running() bool {
	_, err := n.spec.Leader()
	return err == nil
}

// Boots counts the boots since the last Start: it is 2 after one reboot.
func (n *Node) Boots() (int, error) {
	r, err := n.spec.State()
	return r.Boots, err
}

// Reboot reboots the node from inside and returns when the next boot's PID 1
// runs.
func (n *Node) Reboot(ctx context.Context) error {
	before, err := n.Boots()
	if err != nil {
		return err
	}
	if err := n.Run(ctx, "systemctl", "reboot"); err != nil {
		return err
	}
	err = proc.Poll(ctx, "reboot of "+n.Name, func() (bool, error) {
		r, err := n.spec.State()
		if err != nil {
			return false, err
		}
		return r.Boots > before && n.Running(), nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, n.shutdownState())
	}
	return nil
}

// shutdownState says what a reboot waits for: systemd's jobs, the processes that
// still run, and what the console shows.
func (n *Node) shutdownState() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	jobs, err := n.Output(ctx, "sh", "-c", "systemctl list-jobs; ps axo pid,ppid,stat,wchan:20,args")
	if err != nil {
		jobs = err.Error()
	}
	console, err := os.ReadFile(filepath.Join(n.rec.Dir, "console.log"))
	if err != nil {
		return jobs + err.Error()
	}
	return jobs + string(console[max(0, len(console)-4000):])
}

// Partition cuts the node off the network, or connects it again.
func (n *Node) Partition(ctx context.Context, cut bool) error {
	state := "up"
	if cut {
		state = "down"
	}
	return n.lab.ns.IP(ctx, "link", "set", n.spec.Link(), state)
}

// Remove crashes the node and removes its disk. The cluster's Node object stays.
func (n *Node) Remove(ctx context.Context) error {
	if err := n.spec.Kill(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(n.rec.Dir); err != nil {
		return fmt.Errorf("remove disk of %s: %w", n.Name, err)
	}
	return state.Update(n.lab.Name, func(s *state.State) error {
		delete(s.Nodes, n.Name)
		return n.lab.writeHosts(s)
	})
}
