package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cutSeed chooses the moments.
const cutSeed = 4

const cuts = 5

// powerCuts takes the power at five moments spread over the time that
// provisioning takes. Each time the disk must hold no half-written file, and
// the machine must become a node by itself at its next boot.
func (m *machine) powerCuts(t *testing.T, took time.Duration, want map[string]string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(cutSeed, 0))
	before := m.unprovisioned(t, want)
	for i := range cuts {
		moment := time.Duration((float64(i) + rng.Float64()) / cuts * float64(took))
		m.cutAt(t, moment, before, want)
		m.recover(t, want)
		if t.Failed() {
			t.Fatalf("after the cut at %s of %s", moment, took)
		}
	}
}

// unprovisioned returns the sums of what is under the managed names before the
// first run.
func (m *machine) unprovisioned(t *testing.T, want map[string]string) map[string]string {
	t.Helper()
	m.restore(t)
	return m.sums(t, want)
}

// restore brings the machine back to the moment before its first run, and the
// cluster to where it does not know it.
func (m *machine) restore(t *testing.T) {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	err := m.lab.Client().CoreV1().Nodes().Delete(within(t, time.Minute), m.Name, metav1.DeleteOptions{})
	if err != nil && !strings.Contains(err.Error(), "not found") {
		t.Fatal(err)
	}
	if err := m.BootState(within(t, vmDeadline), beforeProvisioning); err != nil {
		t.Fatal(err)
	}
}

// cutAt provisions and takes the power after a while. Where the run has ended
// by then, it takes another one, earlier.
func (m *machine) cutAt(t *testing.T, moment time.Duration, before, want map[string]string) {
	t.Helper()
	for ; ; moment = moment * 3 / 4 {
		m.restore(t)
		m.step("restored")
		m.release(t)
		start := time.Now()
		<-time.After(moment)
		if err := m.PowerCut(); err != nil {
			t.Fatal(err)
		}
		m.step(fmt.Sprintf("power cut after %s", time.Since(start).Round(time.Millisecond)))
		if !m.examine(t, before, want) {
			return
		}
		t.Logf("provisioning had ended before %s: once more, earlier", moment)
	}
}

// examine looks at the disk of the machine that is off: the file system is
// sound after its journal is replayed, and every managed name has its old
// content, its new content, or none. It says whether provisioning had ended.
func (m *machine) examine(t *testing.T, before, want map[string]string) (ended bool) {
	t.Helper()
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	defer os.Remove(disk)
	if err := m.CopyDisk(within(t, time.Minute), disk); err != nil {
		t.Fatal(err)
	}
	m.step("disk copied")
	checkDisk(t, disk)
	m.step("disk checked")
	names := append(slices.Sorted(maps.Keys(want)), stateFiles...)
	files := dump(t, disk, filepath.Join(dir, "files"), names)
	written := 0
	for path, sum := range want {
		got := ""
		if data, ok := files[path]; ok {
			hash := sha256.Sum256(data)
			got = hex.EncodeToString(hash[:])
		}
		switch {
		case got == sum:
			written++
		case got != before[path]:
			t.Errorf("after the power cut %s holds neither the old nor the new content:\n%q", path, files[path])
		}
	}
	for _, path := range stateFiles {
		if data, ok := files[path]; ok && !json.Valid(data) {
			t.Errorf("after the power cut %s is half-written: %q", path, data)
		}
	}
	_, ended = files[sentinelPath]
	m.step(fmt.Sprintf("%d of %d files were written", written, len(want)))
	return ended
}

// stateFiles are what berth knows and tells; all of them JSON.
var stateFiles = []string{"/var/lib/berth/ledger.json", "/var/lib/berth/journal.json", "/var/lib/berth/timeline.json", resultPath, sentinelPath}

// checkDisk replays the journal, as the next mount would, and checks everything.
func checkDisk(t *testing.T, disk string) {
	t.Helper()
	out, err := exec.Command("e2fsck", "-p", disk).CombinedOutput()
	if code := exitCode(err); code > 1 {
		t.Fatalf("e2fsck -p: exit code %d\n%s", code, out)
	}
	t.Logf("%s", out)
	if out, err := exec.Command("e2fsck", "-f", "-n", disk).CombinedOutput(); err != nil {
		t.Errorf("e2fsck -fn: %v\n%s", err, out)
	}
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return 255
}

// dump reads files of a file system that is not mounted.
func dump(t *testing.T, disk, dir string, paths []string) map[string][]byte {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var commands strings.Builder
	for i, p := range paths {
		fmt.Fprintf(&commands, "dump %q %s/%d\n", p, dir, i)
	}
	cmd := exec.Command("debugfs", "-f", "/dev/stdin", disk)
	cmd.Stdin = strings.NewReader(commands.String())
	if out, err := cmd.CombinedOutput(); err != nil {
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

// recover boots the machine after a power cut and proves that it becomes the
// node that an undisturbed run makes.
func (m *machine) recover(t *testing.T, want map[string]string) {
	t.Helper()
	if err := m.Boot(within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.awaitAgent(t)
	m.step("booted, agent answers")
	checkStatus(t, m.cse(t))
	m.step("provision-wait returned")
	m.awaitReady(t)
	m.step("Ready")
	for path, sum := range m.sums(t, want) {
		if sum != want[path] {
			t.Errorf("%s has the sum %s, want %s", path, sum, want[path])
		}
	}
	m.ask(t, recovered)
	m.step("checked")
	t.Log(m.sh(t, "dmesg | grep EXT4-fs; systemd-analyze time || true"))
}

// recovered are questions about a machine that has recovered.
var recovered = map[string]string{
	berthPath + " plan -f " + configPath + " 2>&1; echo $?":                                                             "0",
	"find /etc /opt /usr/local /var/lib/berth /var/lib/kubelet /var/log /root -xdev -name '*.berth.*' -o -name '*.new'": "",
	"ls /var/lib/berth/journal.json 2>/dev/null":                                                                        "",
	"systemctl --failed --no-legend":                                                                                    "",
	"systemctl show -p NRestarts --value aks-node-controller kubelet containerd | uniq":                                 "0\n\n0\n\n0",
	"swapon --show --noheadings":                                                                                        "",
}

// sums are the sha256 sums of the files under some names, as the machine reads
// them; there is none for a file that is not there.
func (m *machine) sums(t *testing.T, paths map[string]string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(m.sh(t, "sha256sum '"+strings.Join(slices.Sorted(maps.Keys(paths)), "' '")+"' 2>/dev/null || true")) {
		if sum, path, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			out[path] = sum
		}
	}
	return out
}

// shutDown turns the machine off in the orderly way; its disk must be clean.
func (m *machine) shutDown(t *testing.T) {
	t.Helper()
	if err := m.PowerDown(within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.step("powered down")
	disk := filepath.Join(t.TempDir(), "disk")
	if err := m.CopyDisk(context.Background(), disk); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("e2fsck", "-f", "-n", disk).CombinedOutput(); err != nil {
		t.Errorf("e2fsck -fn: %v\n%s", err, out)
	}
	m.step("disk checked")
}
