package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const seedDir = "/var/lib/cloud/seed/nocloud"

// create lays the disk of a new node out: seed, name service, caller's files.
func (n *Node) create(c NodeConfig) error {
	if err := n.spec.Mount(n.rec.Lowers); err != nil {
		return err
	}
	if c.Flavour == Prebaked {
		// containerd's state with the sandbox image
		if err := copyTree(filepath.Join(n.lab.pause, "containerd"), filepath.Join(n.rec.Dir, "containerd")); err != nil {
			return err
		}
	}
	files, err := n.firstFiles(c)
	if err != nil {
		return err
	}
	for path, f := range c.Files {
		files[path] = f
	}
	for path, f := range files {
		if err := n.lay(path, f); err != nil {
			return err
		}
	}
	return nil
}

// firstFiles are what tells a new machine who it is.
func (n *Node) firstFiles(c NodeConfig) (map[string]File, error) {
	if c.Ignition != nil {
		return n.plainFiles(), n.dropCloudInit()
	}
	if c.UserData == nil {
		files := n.plainFiles()
		files["/etc/cloud/cloud-init.disabled"] = File{}
		return files, nil
	}
	id := c.InstanceID
	if id == "" {
		id = "i-" + c.Name
	}
	return n.seed(id, c.UserData)
}

// SetInstance gives a stopped node a new instance-id and user data: what the
// cloud does when a machine is made from a captured disk.
func (n *Node) SetInstance(id string, userData []byte) error {
	files, err := n.seed(id, userData)
	if err != nil {
		return err
	}
	if err := n.spec.Mount(n.rec.Lowers); err != nil {
		return err
	}
	for path, f := range files {
		if err := n.lay(path, f); err != nil {
			return err
		}
	}
	return nil
}

// seed is what the NoCloud data source reads.
func (n *Node) seed(id string, userData []byte) (map[string]File, error) {
	meta, err := yaml.Marshal(map[string]string{"instance-id": id, "local-hostname": n.Name})
	if err != nil {
		return nil, fmt.Errorf("encode meta-data: %w", err)
	}
	network, err := yaml.Marshal(n.lab.networkConfig(n.IP.String()))
	if err != nil {
		return nil, fmt.Errorf("encode network-config: %w", err)
	}
	return map[string]File{
		seedDir + "/meta-data":      {Content: meta},
		seedDir + "/user-data":      {Content: userData, Mode: 0o600},
		seedDir + "/network-config": {Content: network},
		"/etc/resolv.conf":          {Content: n.lab.resolvConf()},
	}, nil
}

func (l *Lab) networkConfig(ip string) map[string]any {
	return map[string]any{"version": 2, "ethernets": map[string]any{"host0": map[string]any{
		"addresses":   []string{fmt.Sprintf("%s/%d", ip, l.subnet.Bits())},
		"routes":      []any{map[string]string{"to": "0.0.0.0/0", "via": l.Gateway().String()}},
		"nameservers": map[string]any{"addresses": []string{l.Gateway().String()}},
	}}}
}

// lay writes a file to the disk of a node that does not run.
func (n *Node) lay(path string, f File) error {
	if f.Mode == 0 {
		f.Mode = 0o644
	}
	dest := filepath.Join(n.rec.Dir, "root", path)
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return fmt.Errorf("lay %s: %w", path, err)
	}
	if err := os.RemoveAll(dest); err != nil {
		return fmt.Errorf("lay %s: %w", path, err)
	}
	if err := os.WriteFile(dest, f.Content, f.Mode); err != nil {
		return fmt.Errorf("lay %s: %w", path, err)
	}
	return os.Chmod(dest, f.Mode)
}
