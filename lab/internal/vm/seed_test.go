package vm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"github.com/google/go-cmp/cmp"
)

func TestSeedISO(t *testing.T) {
	iso := filepath.Join(t.TempDir(), "seed.iso")
	s := SeedFor("i-1", "node-1", "52:54:00:12:34:01", "10.99.0.11/24", "10.99.0.1", []byte("#cloud-config\n"))
	for range 2 { // the second replaces the first
		ok(t, s.writeISO(iso))
	}
	want := map[string]string{
		"meta-data": "instance-id: i-1\nlocal-hostname: node-1\n",
		"user-data": "#cloud-config\n",
		"network-config": `version: 2
ethernets:
  id0:
    match: {macaddress: "52:54:00:12:34:01"}
    set-name: host0
    addresses: ["10.99.0.11/24"]
    gateway4: "10.99.0.1"
`,
	}
	if diff := cmp.Diff(want, contents(t, iso)); diff != "" {
		t.Error(diff)
	}
	// cloud-init asks blkid for the file system and its label.
	for tag, want := range map[string]string{"TYPE": "iso9660\n", "LABEL": "cidata\n"} {
		got, err := exec.Command("/sbin/blkid", "-p", "-o", "value", "-s", tag, iso).Output()
		if err != nil || string(got) != want {
			t.Errorf("%s=%q, %v", tag, got, err)
		}
	}
	info, err := os.Stat(iso)
	ok(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %s", info.Mode())
	}
	if left, err := os.ReadDir(filepath.Dir(iso)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestSeedWithoutNetwork(t *testing.T) {
	iso := filepath.Join(t.TempDir(), "seed.iso")
	sectors := bytes.Repeat([]byte("0123456789abcdef"), 3*2048/16)
	ok(t, Seed{MetaData: []byte("instance-id: i-1\n"), UserData: sectors}.writeISO(iso))
	want := map[string]string{"meta-data": "instance-id: i-1\n", "user-data": string(sectors)}
	if diff := cmp.Diff(want, contents(t, iso)); diff != "" {
		t.Error(diff)
	}
	// An empty network-config means no network, and none means DHCP.
	ok(t, Seed{UserData: []byte{}, NetworkConfig: []byte{}}.writeISO(iso))
	if diff := cmp.Diff(map[string]string{"meta-data": "", "user-data": "", "network-config": ""}, contents(t, iso)); diff != "" {
		t.Error(diff)
	}
}

// contents are the files of a disk by their names.
func contents(t *testing.T, iso string) map[string]string {
	t.Helper()
	f, err := os.Open(iso)
	ok(t, err)
	defer f.Close()
	disk, err := iso9660.Read(file.New(f, true), 0, 0, 0)
	ok(t, err)
	entries, err := disk.ReadDir(".")
	ok(t, err)
	found := map[string]string{}
	for _, e := range entries {
		data, err := disk.ReadFile(e.Name())
		ok(t, err)
		found[e.Name()] = string(data)
	}
	return found
}
