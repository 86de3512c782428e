package lab

import (
	"context"
	"fmt"
	"os"

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
	return proc.Poll(ctx, "reboot of "+n.Name, func() (bool, error) {
		r, err := n.spec.State()
		if err != nil {
			return false, err
		}
		return r.Boots > before && n.Running(), nil
	})
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
