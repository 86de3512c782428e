package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeedISO(t *testing.T) {
	iso := filepath.Join(t.TempDir(), "seed.iso")
	s := SeedFor("i-1", "node-1", "52:54:00:12:34:01", "10.99.0.11/24", "10.99.0.1", []byte("#cloud-config\n"))
	for range 2 { // the second replaces the first
		ok(t, s.writeISO(t.Context(), iso))
	}
	want := map[string]string{
		"/meta-data": "instance-id: i-1\nlocal-hostname: node-1\n",
		"/user-data": "#cloud-config\n",
		"/network-config": `version: 2
ethernets:
  id0:
    match: {macaddress: "52:54:00:12:34:01"}
    set-name: host0
    addresses: ["10.99.0.11/24"]
    gateway4: "10.99.0.1"
`,
	}
	for name, text := range want {
		got, err := exec.Command("isoinfo", "-R", "-i", iso, "-x", name).Output()
		ok(t, err)
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
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
