package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
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
func (s Seed) writeISO(iso string) error {
	dir, err := os.MkdirTemp(filepath.Dir(iso), "seed-")
	if err != nil {
		return fmt.Errorf("make seed directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := s.writeFiles(dir); err != nil {
		return fmt.Errorf("write seed: %w", err)
	}
	if err := os.RemoveAll(iso); err != nil {
		return fmt.Errorf("replace seed disk: %w", err)
	}
	if err := pack(dir, iso); err != nil {
		return fmt.Errorf("make seed disk: %w", err)
	}
	return nil
}

// pack puts the files of dir on a disk as cloud-init's NoCloud looks for it: an
// ISO 9660 file system labelled cidata. Rock Ridge keeps the names, which
// plain ISO 9660 would cut to META_DAT.
func pack(dir, iso string) (err error) {
	f, err := os.OpenFile(iso, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	disk, err := iso9660.Create(file.New(f, false), 0, 0, 0, dir)
	if err != nil {
		return err
	}
	return disk.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: "cidata"})
}

func (s Seed) writeFiles(dir string) (err error) {
	parts := []struct {
		name string
		data []byte
	}{{"meta-data", s.MetaData}, {"user-data", s.UserData}, {"network-config", s.NetworkConfig}}
	for _, p := range parts {
		// Absent and empty differ: an empty network-config means no network.
		if p.name == "network-config" && p.data == nil {
			continue
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, p.name), p.data, 0o600))
	}
	return err
}
