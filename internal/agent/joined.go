package agent

import (
	"bytes"
	"fmt"
)

// bootID is the kernel's name for this boot. kubelet writes it on the Node, also after a
// restart of userspace alone.
const bootID = "/proc/sys/kernel/random/boot_id"

// joined takes the token and kubelet's first credential away once kubelet has spoken
// for the Node in this boot. A Node that another machine of this name left behind does
// not count: kubelet would be left with nothing.
func (a *Agent) joined() error {
	id, err := a.Host.ReadFile(bootID)
	if err != nil {
		return fmt.Errorf("read the boot's name: %w", err)
	}
	n := a.node.Get()
	if n == nil || n.Status.NodeInfo.BootID != string(bytes.TrimSpace(id)) {
		return nil
	}
	return a.keeper.TakeAway()
}

// joinedByFile is that of a file beside the Secret. Another source's document is not in
// force with it, and may bring what takes the place of the token: then that one tells.
func (a *Agent) joinedByFile() error {
	if s := a.options.Sources; *s.Secret || s.OperatingSystemConfig != "" || len(a.files) > 1 {
		return nil
	}
	return a.joined()
}
