package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/berth-dev/berth/lab/internal/hostdeps"
)

// cloudInitParts are what makes cloud-init run, as patterns below the root.
var cloudInitParts = []string{
	"etc/cloud", "etc/init.d/cloud-*", "etc/rc?.d/*cloud-*", "usr/bin/cloud-init*",
	"usr/lib/systemd/system/cloud-*", "usr/lib/systemd/system-generators/cloud-init-generator",
}

// dropCloudInit makes a new node's disk one of an image without cloud-init.
func (n *Node) dropCloudInit() error {
	root := filepath.Join(n.rec.Dir, "root")
	for _, pattern := range cloudInitParts {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("remove cloud-init: nothing matches %s: %w", pattern, err)
		}
		for _, p := range found {
			if err := os.RemoveAll(p); err != nil {
				return fmt.Errorf("remove cloud-init: %w", err)
			}
		}
	}
	return nil
}

// plainFiles are what the NoCloud seed says otherwise: where cloud-init does not
// run, name and network come from elsewhere.
func (n *Node) plainFiles() map[string]File {
	network := fmt.Sprintf("[Match]\nName=host0\n\n[Network]\nAddress=%s/%d\nGateway=%s\nIPv6AcceptRA=no\nIPv6DuplicateAddressDetection=0\n",
		n.IP, n.lab.subnet.Bits(), n.lab.Gateway())
	return map[string]File{
		"/etc/hostname":                         {Content: []byte(n.Name + "\n")},
		"/etc/systemd/network/50-host0.network": {Content: []byte(network)},
		"/etc/resolv.conf":                      {Content: n.lab.resolvConf()},
	}
}

// ignite applies an Ignition configuration to the disk of a node that has not
// booted: the stages that Ignition runs in a machine's initramfs, by Debian's
// package of it. "disks" and "mount" have nothing to do here, but run too.
func (n *Node) ignite(ctx context.Context, config []byte) error {
	if err := hostdeps.Ignition(ctx, n.lab.log); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(n.rec.Dir, "ignition-")
	if err != nil {
		return fmt.Errorf("make room for ignition: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config.ign")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return fmt.Errorf("write ignition configuration: %w", err)
	}
	undo, err := n.withoutSELinux(dir)
	if err != nil {
		return err
	}
	for _, stage := range []string{"fetch-offline", "kargs", "disks", "mount", "files", "umount"} {
		if err := n.stage(ctx, stage, dir, file); err != nil {
			return errors.Join(err, undo())
		}
	}
	return undo()
}

func (n *Node) stage(ctx context.Context, stage, dir, config string) error {
	cmd := exec.CommandContext(ctx, hostdeps.IgnitionPath(), "--platform=file", "--stage="+stage, "--root="+filepath.Join(n.rec.Dir, "root"),
		"--config-cache="+dir+"/cache.json", "--neednet="+dir+"/neednet", "--state-file="+dir+"/state", "--log-to-stdout")
	cmd.Env = append(os.Environ(), "IGNITION_CONFIG_FILE="+config, "PATH="+dir+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ignition, stage %s: %w\n%s", stage, err, out.Bytes())
	}
	return nil
}

// withoutSELinux lets Debian's build of Ignition end well: its last act is to
// label files, which fails where there is no policy. Images with Ignition and
// without SELinux have a build that leaves it out.
func (n *Node) withoutSELinux(dir string) (undo func() error, err error) {
	policy := "/etc/selinux/config"
	root := filepath.Join(n.rec.Dir, "root")
	if err := n.lay(policy, File{Content: []byte("SELINUXTYPE=none\n")}); err != nil {
		return nil, err
	}
	if err := os.Symlink("/bin/true", filepath.Join(dir, "setfiles")); err != nil {
		return nil, fmt.Errorf("stand in for setfiles: %w", err)
	}
	return func() error { return os.RemoveAll(filepath.Dir(filepath.Join(root, policy))) }, nil
}
