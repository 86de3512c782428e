package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Seed is the NoCloud data source of a machine. UserData is the decoded
// CustomData. NetworkConfig is optional; without it cloud-init tries DHCP.
type Seed struct {
	MetaData      []byte
	UserData      []byte
	NetworkConfig []byte
}

// SeedFor names the machine and gives its only network card a fixed address.
// cidr is address/prefix; the card is found by mac and called host0.
func SeedFor(instanceID, hostname, mac, cidr, gateway string, userData []byte) Seed {
	network := fmt.Sprintf(`version: 2
ethernets:
  id0:
    match: {macaddress: %q}
    set-name: host0
    addresses: [%q]
    gateway4: %q
`, mac, cidr, gateway)
	return Seed{
		MetaData:      fmt.Appendf(nil, "instance-id: %s\nlocal-hostname: %s\n", instanceID, hostname),
		UserData:      userData,
		NetworkConfig: []byte(network),
	}
}

// writeISO makes the disk that cloud-init finds by its label. User data holds
// tokens, so neither the disk nor the files it is made from are readable by
// others.
func (s Seed) writeISO(ctx context.Context, iso string) error {
	dir, err := os.MkdirTemp(filepath.Dir(iso), "seed-")
	if err != nil {
		return fmt.Errorf("make seed directory: %w", err)
	}
	defer os.RemoveAll(dir)
	files, err := s.writeFiles(dir)
	if err != nil {
		return fmt.Errorf("write seed: %w", err)
	}
	if err := errors.Join(os.RemoveAll(iso), os.WriteFile(iso, nil, 0o600)); err != nil {
		return fmt.Errorf("make seed disk: %w", err)
	}
	args := append([]string{"-quiet", "-output", iso, "-volid", "cidata", "-joliet", "-rock"}, files...)
	return run(exec.CommandContext(ctx, "genisoimage", args...))
}

func (s Seed) writeFiles(dir string) (files []string, err error) {
	parts := []struct {
		name string
		data []byte
	}{{"meta-data", s.MetaData}, {"user-data", s.UserData}, {"network-config", s.NetworkConfig}}
	for _, p := range parts {
		// Absent and empty differ: an empty network-config means no network.
		if p.name == "network-config" && p.data == nil {
			continue
		}
		file := filepath.Join(dir, p.name)
		err = errors.Join(err, os.WriteFile(file, p.data, 0o600))
		files = append(files, file)
	}
	return files, err
}
