package vm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

const ledgerPath = "/var/lib/berth/ledger.json"

// stateFiles are what berth keeps and tells. All are JSON.
var stateFiles = []string{ledgerPath, "/var/lib/berth/timeline.json", setup.ResultPath, setup.SentinelPath}

// managed are the files that berth owns on the converged machine and the sums
// of their contents, where these do not differ from machine to machine.
func (m *machine) managed(t *testing.T) map[string]string {
	t.Helper()
	data, err := m.ReadFile(setup.Within(t, vmDeadline), ledgerPath)
	if err != nil {
		t.Fatal(err)
	}
	type entry struct{ Put struct{ Sum string } }
	var ledger struct {
		Entries map[string]entry
		Run     struct {
			Claims map[string]struct{ Entry entry }
		}
	}
	if err := json.Unmarshal(data, &ledger); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for path, c := range ledger.Run.Claims { // the run has ended: they are entries
		ledger.Entries[path] = c.Entry
	}
	for path, e := range ledger.Entries {
		if _, err := hex.DecodeString(e.Put.Sum); err == nil && e.Put.Sum != "" {
			files[path] = e.Put.Sum
		}
	}
	if got := m.sums(t, files); len(files) == 0 || !maps.Equal(got, files) {
		t.Errorf("files of the ledger:\n got %v\nwant %v", got, files)
	}
	return files
}

// examine looks at the disk after a power cut: every managed name has its old
// content, its new content, or none. It says how many have their new content,
// and whether provisioning had ended.
func (m *machine) examine(t *testing.T) (written int, ended bool) {
	t.Helper()
	disk := m.copyDisk(t)
	checkDisk(t, disk)
	found := dump(t, disk, append(slices.Sorted(maps.Keys(m.files)), stateFiles...))
	for path, sum := range m.files {
		switch digest(found, path) {
		case sum:
			written++
		case m.before[path]:
		default:
			t.Errorf("after the power cut %s has neither its old nor its new content:\n%q", path, found[path])
		}
	}
	for _, path := range stateFiles {
		if data, ok := found[path]; ok && !json.Valid(data) {
			t.Errorf("after the power cut %s is half-written:\n%q", path, data)
		}
	}
	_, ended = found[setup.SentinelPath]
	return written, ended
}

// digest is "" for a file that is not there.
func digest(files map[string][]byte, path string) string {
	data, ok := files[path]
	if !ok {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// copyDisk copies the disk of the machine that is off.
func (m *machine) copyDisk(t *testing.T) string {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk")
	if err := m.CopyDisk(setup.Within(t, vmDeadline), disk); err != nil {
		t.Fatal(err)
	}
	return disk
}

// checkDisk replays a file system's journal, as the next mount would, and then
// checks all of it.
func checkDisk(t *testing.T, disk string) {
	t.Helper()
	const corrected = 1 // the journal was replayed
	out, err := exec.Command("e2fsck", "-p", disk).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != corrected) {
		t.Errorf("e2fsck -p: %v\n%s", err, out)
	}
	if out, err := exec.Command("e2fsck", "-f", "-n", disk).CombinedOutput(); err != nil {
		t.Errorf("e2fsck -f -n: %v\n%s", err, out)
	}
}

// dump reads files of a file system that is not mounted. It leaves out those
// that are not there, and removes the disk.
func dump(t *testing.T, disk string, paths []string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	var commands strings.Builder
	for i, p := range paths {
		fmt.Fprintf(&commands, "dump %q %s/%d\n", p, dir, i)
	}
	cmd := exec.Command("debugfs", "-f", "/dev/stdin", disk)
	cmd.Stdin = strings.NewReader(commands.String())
	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, os.Remove(disk)); err != nil {
		t.Fatalf("debugfs: %v\n%s", err, out)
	}
	files := map[string][]byte{}
	for i, p := range paths {
		if data, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i))); err == nil {
			files[p] = data
		}
	}
	return files
}
