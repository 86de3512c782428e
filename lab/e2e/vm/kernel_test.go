package vm

import (
	"fmt"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab/e2e/setup"
)

// TestCaseKernel shows on a machine with its own kernel what other nodes share with their
// host: the clock, swap and huge pages.
func TestCaseKernel(t *testing.T) {
	m := idleMachine(t, setup.Lab(t), "case-kernel")
	for _, p := range []part{{"clock", m.clock}, {"swap", m.swaps}} {
		if !t.Run(p.name, p.run) {
			return // the next one would meet what this one has left
		}
	}
}

// swaps has the machine, which swaps, join and leave a cluster. Then it puts swap and huge
// pages in force, has them come back at boot, also where the swap file has gone as a resource
// disk does, and withdraws both.
func (m *machine) swaps(t *testing.T) {
	m.joinsBesideSwap(t)
	was := m.sh(t, chosen)
	m.applies(t, 48)
	m.ask(t, swapFacts(48))
	m.step(t, "swap is in use")
	m.sh(t, "swapoff /swapfile && rm /swapfile && sync")
	m.boots(t)
	m.ask(t, swapFacts(48))
	m.step(t, "and after a boot without the file")
	m.applies(t, 64)
	m.ask(t, swapFacts(64))
	m.applies(t, 0)
	m.ask(t, map[string]string{
		"swapon --show --noheadings": "",
		"ls -A /swapfile /etc/berth/swap.json /etc/tmpfiles.d /etc/systemd/system | grep -i 'swap\\|huge'": "ls: cannot access '/swapfile': No such file or directory\nls: cannot access '/etc/berth/swap.json': No such file or directory",
		"systemctl list-units --all --no-legend --type swap":                                               "",
		"systemctl --failed --no-legend":                                                                   "",
		planned:                                                                                            "no changes\n0",
	})
	if now := m.sh(t, chosen); now != was {
		t.Errorf("huge pages are %q, were %q", now, was)
	}
	m.step(t, "withdrawn")
	m.taken(t)
}

// boots restarts the machine and waits until systemd has started all that belongs to a
// boot: the machine answers before that.
func (m *machine) boots(t *testing.T) {
	t.Helper()
	if err := m.Reboot(setup.Within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.sh(t, "systemctl is-system-running --wait || true")
}

// hugePages begins the paths of the kernel's choices.
const hugePages = "/sys/kernel/mm/transparent_hugepage/"

// chosen prints the two choices that a configuration makes.
const chosen = "cat " + hugePages + "enabled " + hugePages + "defrag"

// imageFile is the configuration of a machine that is being prepared.
const imageFile = "/var/tmp/image.json"

const planned = setup.BerthPath + " plan -f " + imageFile + " 2>&1; echo $?"

func swapFacts(megabytes int) map[string]string {
	const kib = 1000
	return map[string]string{
		"swapon --show=NAME,TYPE,SIZE --bytes --noheadings | xargs":                        fmt.Sprintf("/swapfile file %d", megabytes*kib<<10-4096),
		"stat -c '%a %U %s' /swapfile":                                                     fmt.Sprintf("600 root %d", megabytes*kib<<10),
		"blkid -o value -s TYPE -s LABEL --probe /swapfile | sort | xargs":                 "berth swap",
		"systemctl is-enabled swapfile.swap; systemctl is-active swapfile.swap berth-swap": "enabled\nactive\nactive",
		"grep -o '\\[.*\\]' " + hugePages + "enabled " + hugePages + "defrag | xargs":      hugePages + "enabled:[never] " + hugePages + "defrag:[defer+madvise]",
		"systemctl --failed --no-legend":                                                   "",
		"systemd-analyze verify swapfile.swap berth-swap.service 2>&1; echo $?":            "0",
		planned: "no changes\n0",
	}
}

// applies puts a configuration with so much swap in force; 0 is one without swap and huge
// pages.
func (m *machine) applies(t *testing.T, megabytes int32) {
	t.Helper()
	cfg := &aksnodeconfigv1.Configuration{Version: "v1", KubernetesVersion: setup.Config(t, m.lab).KubernetesVersion, PreProvisionOnly: true}
	if megabytes > 0 {
		cfg.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{EnableSwapConfig: true, SwapFileSize: megabytes,
			TransparentHugepageSupport: "never", TransparentDefrag: "defer+madvise"}
	}
	m.sh(t, fmt.Sprintf("cat >%s <<'EOF'\n%s\nEOF", imageFile, setup.Document(t, cfg)))
	m.ask(t, map[string]string{setup.BerthPath + " plan -f " + imageFile + " >/dev/null 2>&1; echo $?": "2"})
	m.ask(t, map[string]string{setup.BerthPath + " apply -f " + imageFile + " >/var/tmp/apply.log 2>&1 || cat /var/tmp/apply.log": ""})
	m.step(t, fmt.Sprintf("%d MB applied", megabytes))
}

// taken: what others left at the path stays, and the run says why.
func (m *machine) taken(t *testing.T) {
	t.Helper()
	m.sh(t, "echo a letter >/swapfile")
	cfg := &aksnodeconfigv1.Configuration{Version: "v1", KubernetesVersion: setup.Config(t, m.lab).KubernetesVersion, PreProvisionOnly: true,
		CustomLinuxOsConfig: &aksnodeconfigv1.CustomLinuxOsConfig{EnableSwapConfig: true, SwapFileSize: 8}}
	m.sh(t, fmt.Sprintf("cat >%s <<'EOF'\n%s\nEOF", imageFile, setup.Document(t, cfg)))
	m.ask(t, map[string]string{
		setup.BerthPath + " apply -f " + imageFile + " 2>&1 | grep -c 'there is something else at the path'": "1",
		"cat /swapfile": "a letter",
	})
	m.step(t, "a taken path refused")
}
