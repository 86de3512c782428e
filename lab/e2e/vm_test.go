package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// beforeProvisioning is the saved state that every power cut starts from.
const beforeProvisioning = "before-provisioning"

// vmDeadline is for everything that waits for the machine. A boot takes 25 s
// on two free processors and several times that on busy ones.
const vmDeadline = 5 * time.Minute

// machine is the emulated machine of case 4.
type machine struct {
	*lab.VM
	lab  *lab.Lab
	step func(what string)
}

// TestCaseMachine follows a machine with its own kernel from CustomData through
// a reboot and five power cuts. The parts are in order: each meets the machine
// as the one before left it.
func TestCaseMachine(t *testing.T) {
	l := sharedLab(t)
	m := addMachine(t, l)
	took := m.firstBoot(t)
	want := m.managed(t)
	if t.Failed() {
		return
	}
	m.reboot(t)
	m.powerCuts(t, took, want)
	m.shutDown(t)
}

func addMachine(t *testing.T, l *lab.Lab) *machine {
	t.Helper()
	v, err := l.AddVM(within(t, vmDeadline), lab.VMConfig{Name: "case-vm", UserData: customData(t, nodeConfig(t, l, ownKernel))})
	if err != nil {
		t.Fatal(err)
	}
	last := time.Now()
	m := &machine{VM: v, lab: l, step: func(what string) {
		t.Logf("%5.1f s  %s", time.Since(last).Seconds(), what)
		last = time.Now()
	}}
	t.Cleanup(func() {
		if t.Failed() && v.Running() {
			logMachine(t, v)
		}
		if err := v.Remove(within(t, time.Minute)); err != nil {
			t.Errorf("remove machine: %v", err)
		}
	})
	return m
}

// ownKernel takes out what only nspawn nodes need and adds what they can't
// show: parameters of the whole kernel, and kubelet's refusal of swap.
func ownKernel(c *aksnodeconfigv1.Configuration) {
	for _, f := range []string{"--fail-cgroupv1", "--max-open-files", "--oom-score-adj", "--fail-swap-on"} {
		delete(c.KubeletConfig.KubeletFlags, f)
	}
	swappiness, files, limit := int32(7), int32(1048576), "65536"
	c.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{
		SysctlConfig: &aksnodeconfigv1.SysctlConfig{VmSwappiness: &swappiness, FsFileMax: &files},
		UlimitConfig: &aksnodeconfigv1.UlimitConfig{NoFile: &limit},
	}
}

// hold makes the unit of provisioning stop right before it runs berth, in this
// boot only, and returns when it is there.
const hold = `set -e
unit=aks-node-controller.service
mkdir -p /run/hold /run/systemd/system/$unit.d
mkfifo /run/hold/reached /run/hold/go
cat >/run/systemd/system/$unit.d/hold.conf <<EOF
[Service]
TimeoutStartSec=infinity
ExecStartPre=/bin/sh -c 'echo >/run/hold/reached; read go </run/hold/go'
EOF
systemctl daemon-reload
cat /run/hold/reached >/dev/null
test ! -e ` + sentinelPath

// firstBoot lets a new machine boot up to the start of provisioning, saves its
// state, and lets it go on to Ready. It returns how long provisioning took.
func (m *machine) firstBoot(t *testing.T) time.Duration {
	t.Helper()
	m.awaitAgent(t)
	m.sh(t, hold)
	m.step("provisioning is about to start")
	if err := m.SaveState(within(t, vmDeadline), beforeProvisioning); err != nil {
		t.Fatal(err)
	}
	m.step("state saved")
	start := time.Now()
	m.release(t)
	checkStatus(t, m.cse(t))
	took := time.Since(start)
	m.step("provision-wait returned")
	m.awaitReady(t)
	m.step("Ready")
	runPod(t, m.lab, "vm-pod", m.Name)
	m.step("pod runs")
	m.checkFacts(t)
	m.step("facts checked")
	return took
}

// release lets the held unit go on.
func (m *machine) release(t *testing.T) {
	t.Helper()
	m.sh(t, "echo >/run/hold/go")
}

// reboot proves that a node comes back as it was, with what only a boot can
// apply, and without another run.
func (m *machine) reboot(t *testing.T) {
	t.Helper()
	before := m.sh(t, result)
	if err := m.Reboot(within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.step("rebooted, agent answers")
	m.awaitReady(t)
	m.step("Ready after the reboot")
	if diff := cmp.Diff(before, m.sh(t, result)); diff != "" {
		t.Errorf("the reboot changed the result (-before +after):\n%s", diff)
	}
	waitRunning(t, m.lab, "vm-pod")
	m.checkFacts(t)
	m.checkBoot(t)
	m.step("facts checked")
}

// result is everything about the last run, with times of the files.
const result = "stat -c '%n %i %Y %s' " + resultPath + " " + sentinelPath + "; ls /var/log/azure/aks; cat " + resultPath + " " + sentinelPath

// sh runs a script in the machine that must succeed and returns what it prints.
func (m *machine) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := m.Output(within(t, vmDeadline), "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (m *machine) awaitAgent(t *testing.T) {
	t.Helper()
	if err := m.WaitAgent(within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
}

// awaitReady waits until the kubelet of this boot says that it is Ready: the
// word of the last one does not count.
func (m *machine) awaitReady(t *testing.T) {
	t.Helper()
	boot, err := m.BootID(within(t, vmDeadline))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.lab.WaitNode(within(t, vmDeadline), m.Name, func(n *corev1.Node) bool {
		return n.Status.NodeInfo.BootID == boot && ready(n)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cse runs the client's command as the extension does.
func (m *machine) cse(t *testing.T) extensionRun {
	t.Helper()
	r, err := m.Exec(within(t, vmDeadline), nil, "/bin/sh", "-c", nodeconfigutils.CSE)
	return extensionRun{message: "[stdout]\n" + string(r.Stdout) + "\n[stderr]\n" + string(r.Stderr), code: r.ExitCode, err: err}
}

// facts are questions about a machine that is a node, and their answers.
var facts = map[string]string{
	"hostname":                           "case-vm",
	"stat -fc %T /sys/fs/cgroup":         "cgroup2fs",
	"swapon --show --noheadings":         "",
	"findmnt -no FSTYPE /":               "ext4",
	"sysctl -n vm.swappiness":            "7",
	"sysctl -n fs.file-max":              "1048576",
	"systemctl --failed --no-legend":     "",
	"systemctl is-system-running --wait": "running",
	"systemctl is-active aks-node-controller kubelet containerd | uniq":                                   "active",
	"systemctl show -p NRestarts --value aks-node-controller kubelet containerd | uniq":                   "0\n\n0\n\n0",
	"dumpe2fs -h /dev/vda 2>/dev/null | grep -c has_journal":                                              "1",
	"tr ' ' '\\n' </sys/fs/cgroup/kubepods.slice/cgroup.controllers | grep -cxE 'cpu|memory|pids'":        "3",
	"systemd-analyze verify kubelet.service containerd.service aks-node-controller.service 2>&1; echo $?": "0",
	// The pod's container is a scope of systemd's in kubelet's slices.
	"sed 's/pod[0-9a-f_]\\{30,\\}/podID/; s/containerd-[0-9a-f]\\{64\\}/containerd-ID/' /proc/$(pgrep -x pause | head -1)/cgroup": "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podID.slice/cri-containerd-ID.scope",
	// Every parameter and module of the files is the kernel's.
	"sed -n 's/^\\([a-z][^ =]*\\) *= *\\(.*\\)$/\\1 \\2/p' /etc/sysctl.d/99-force-bridge-forward.conf /etc/sysctl.d/999-sysctl-aks.conf | sort | uniq | while read k v; do test \"$(sysctl -n $k)\" = \"$v\" || echo $k $v $(sysctl -n $k); done": "",
	"grep -v '^#' /etc/modules-load.d/kubernetes.conf | while read m; do grep -qE \"^$m \" /proc/modules || echo $m; done":                                                                                                                        "",
}

func (m *machine) checkFacts(t *testing.T) {
	t.Helper()
	m.ask(t, facts)
}

// ask puts all questions in one command: each command costs a while.
func (m *machine) ask(t *testing.T, questions map[string]string) {
	t.Helper()
	order := slices.Sorted(maps.Keys(questions))
	var script strings.Builder
	for _, q := range order {
		fmt.Fprintf(&script, "{ %s\n} 2>&1; printf '\\036'\n", q)
	}
	answers := strings.Split(m.sh(t, script.String()), "\036")
	if len(answers) != len(order)+1 {
		t.Fatalf("%d answers to %d questions: %q", len(answers)-1, len(order), answers)
	}
	for i, q := range order {
		if got := strings.TrimSpace(answers[i]); got != questions[q] {
			t.Errorf("%s\n got %q\nwant %q", q, got, questions[q])
		}
	}
}

// checkBoot proves that systemd's own services applied the settings at boot
// and that nothing was provisioned in it.
func (m *machine) checkBoot(t *testing.T) {
	t.Helper()
	m.ask(t, map[string]string{
		"systemctl show -p ActiveState -p Result --value systemd-sysctl systemd-modules-load | sort -u | xargs": "active success",
	})
	t.Log(m.sh(t, "systemd-analyze; journalctl -b -o cat --no-pager -u systemd-modules-load; journalctl -b -o cat -u aks-node-controller _PID=1; journalctl -b -o cat -t aks-node-controller; dmesg | grep 'EXT4-fs'; free -m"))
}

// managed are the paths that berth owns on the converged machine, with sums of
// their contents where these do not differ from machine to machine.
func (m *machine) managed(t *testing.T) map[string]string {
	t.Helper()
	data, err := m.ReadFile(within(t, vmDeadline), "/var/lib/berth/ledger.json")
	if err != nil {
		t.Fatal(err)
	}
	var ledger struct {
		Entries map[string]struct {
			Sum string
		}
	}
	if err := json.Unmarshal(data, &ledger); err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for path, e := range ledger.Entries {
		if e.Sum != "" && !strings.HasPrefix(e.Sum, "link:") {
			sums[path] = e.Sum
		}
	}
	t.Logf("%d managed names, %d with known content", len(ledger.Entries), len(sums))
	return sums
}
