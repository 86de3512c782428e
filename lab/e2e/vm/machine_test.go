package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beforeProvisioning is the saved state that every power cut starts from.
const beforeProvisioning = "before-provisioning"

// vmDeadline is for each thing that waits for the machine. A boot takes half a
// minute on two free processors and several times that on busy ones.
const vmDeadline = 5 * time.Minute

// machine is the emulated machine of TestCaseMachine.
type machine struct {
	*lab.VM
	lab  *lab.Lab
	step func(what string) // logs how long a step took
}

// TestCaseMachine follows a machine with its own kernel from CustomData through
// a reboot and five power cuts. The parts are in order: each meets the machine
// as the one before left it.
func TestCaseMachine(t *testing.T) {
	l := sharedLab(t)
	m := addMachine(t, l)
	took := m.firstBoot(t)
	files := m.managed(t)
	m.reboot(t)
	if t.Failed() {
		return
	}
	m.powerCuts(t, took, files)
	m.shutDown(t)
}

func addMachine(t *testing.T, l *lab.Lab) *machine {
	t.Helper()
	last := time.Now()
	v, err := l.AddVM(within(t, vmDeadline), lab.VMConfig{Name: "case-vm", UserData: customData(t, nodeConfig(t, l, ownKernel))})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{VM: v, lab: l, step: func(what string) {
		t.Logf("%5.1f s  %s", time.Since(last).Seconds(), what)
		last = time.Now()
	}}
	m.step("machine made")
	t.Cleanup(func() {
		if t.Failed() && v.Running() {
			m.logState(t)
		}
		if err := v.Remove(within(t, time.Minute)); err != nil {
			t.Errorf("remove machine: %v", err)
		}
	})
	return m
}

// logState says what a machine is at, for a test that failed.
func (m *machine) logState(t *testing.T) {
	serial, _ := os.ReadFile(m.SerialLog())
	t.Logf("console:\n%s", serial[max(0, len(serial)-12000):])
	for _, script := range []string{
		"systemctl --failed --no-pager; systemctl list-jobs --no-pager; systemctl status --no-pager -n 50 aks-node-controller",
		"journalctl -b --no-pager -p warning; journalctl -b --no-pager -t aks-node-controller -t containerd -t kubelet -n 60",
		"ls -l --time-style=full-iso /etc/systemd/network /opt/azure/containers /var/log/azure/aks /var/lib/berth /var/lib/cloud/data /var/lib/cloud/instance/; networkctl --no-pager status eth0; tail -n 60 /var/log/cloud-init.log",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r, err := m.Exec(ctx, nil, "sh", "-c", script)
		t.Logf("%s: %v\n%s%s", script, err, r.Stdout, r.Stderr)
	}
}

// ownKernel takes out what only nspawn nodes need and adds what they can't
// show: parameters of the whole kernel, and a kubelet that refuses swap.
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
// boot only, and ends when it is there.
//
// cloud-init syncs nothing: for half a minute after it a power cut would leave
// its network configuration and the host keys empty for good, and it would not
// write them again. That is not what is tested here, hence the sync.
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
sync
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
	m.release(t)
	start := time.Now()
	checkStatus(t, m.cse(t))
	took := time.Since(start)
	m.step("provision-wait returned")
	m.awaitReady(t)
	m.step("Ready")
	runPod(t, m.lab, vmPod, m.Name)
	m.step("a pod runs")
	m.ask(t, nodeFacts)
	m.step("facts checked")
	return took
}

// vmPod stays on the machine over the reboot.
const vmPod = "vm-pod"

// release lets the held unit go on.
func (m *machine) release(t *testing.T) {
	t.Helper()
	m.sh(t, "echo >/run/hold/go")
}

// reboot proves that a node comes back as it was, with what only a boot can
// apply, and without another run.
func (m *machine) reboot(t *testing.T) {
	t.Helper()
	before := m.sh(t, lastRun)
	started := m.awaitPod(t, metav1.Time{})
	if err := m.Reboot(within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.step("rebooted, agent answers")
	m.awaitReady(t)
	m.step("Ready after the reboot")
	m.awaitPod(t, started)
	m.ask(t, nodeFacts)
	m.ask(t, rebootFacts)
	if diff := cmp.Diff(before, m.sh(t, lastRun)); diff != "" {
		t.Errorf("the reboot changed the result (-before +after):\n%s", diff)
	}
	m.step("facts checked")
}

// lastRun prints all that the last run left, with the times of the files.
const lastRun = "ls /var/log/azure/aks; cd /; for f in " + resultPath + " " + sentinelPath + " /var/lib/berth/timeline.json; do stat -c '%n %i %y %s' $f; cat $f; done"

// shutDown turns the machine off in the orderly way; its disk must be sound.
func (m *machine) shutDown(t *testing.T) {
	t.Helper()
	if err := m.PowerDown(within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.step("powered down")
	checkDisk(t, m.copyDisk(t))
	m.step("disk checked")
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

// awaitPod waits until the pod's container runs that was not started at old,
// and returns its start.
func (m *machine) awaitPod(t *testing.T, old metav1.Time) metav1.Time {
	t.Helper()
	w, err := m.lab.Client().CoreV1().Pods("default").Watch(within(t, vmDeadline), metav1.ListOptions{FieldSelector: "metadata.name=" + vmPod})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		p, ok := e.Object.(*corev1.Pod)
		if !ok || len(p.Status.ContainerStatuses) == 0 {
			continue
		}
		if now := p.Status.ContainerStatuses[0].State.Running; now != nil && !now.StartedAt.Equal(&old) {
			return now.StartedAt
		}
	}
	t.Fatal("the pod does not run again")
	return old
}

// cse runs the client's command as the extension does.
func (m *machine) cse(t *testing.T) extensionRun {
	t.Helper()
	r, err := m.Exec(within(t, vmDeadline), nil, "/bin/sh", "-c", nodeconfigutils.CSE)
	return extensionRun{message: "[stdout]\n" + string(r.Stdout) + "\n[stderr]\n" + string(r.Stderr), code: r.ExitCode, err: err}
}

// sh runs a script in the machine that must succeed and returns what it prints.
func (m *machine) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := m.Output(within(t, vmDeadline), "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
