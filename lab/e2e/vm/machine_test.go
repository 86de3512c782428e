package vm

import (
	"context"
	"os"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beforeProvisioning is the saved state that every power cut starts from.
const beforeProvisioning = "before-provisioning"

// vmDeadline is for each thing that waits for the machine, which boots in a minute.
const vmDeadline = 5 * time.Minute

// machine is the emulated machine of TestCaseMachine.
type machine struct {
	*lab.VM
	lab  *lab.Lab
	last time.Time // when the last step ended
	// files are those that berth owns on the converged machine; before is what
	// they were like before its first run. See sums.
	files, before map[string]string
	resolvers     string // what the machine asked before together
}

// step logs how long a step took.
func (m *machine) step(t *testing.T, what string) {
	t.Helper()
	t.Logf("%5.1f s  %s", time.Since(m.last).Seconds(), what)
	m.last = time.Now()
}

// TestCaseMachine follows a machine with its own kernel from CustomData through
// a reboot, five power cuts and a full disk. The parts are in order: each meets
// the machine as the one before left it.
func TestCaseMachine(t *testing.T) {
	l := setup.Lab(t)
	m := addMachine(t, l)
	parts := []part{{"first boot", m.firstBoot}, {"node", m.becameNode}, {"automount", m.automount}, {"together", m.together}, {"reboot", m.reboot},
		{"apart", m.apart}, {"data disk", m.dataDisk}}
	for _, c := range cuts {
		parts = append(parts, part{"power cut " + c.name, func(t *testing.T) { m.powerCut(t, c) }})
	}
	parts = append(parts, part{"full disk", m.fullDisk}, part{"shut down", m.shutDown})
	for _, p := range parts {
		if !t.Run(p.name, p.run) {
			return // the parts that follow need the machine as this one leaves it
		}
	}
}

type part struct {
	name string
	run  func(*testing.T)
}

func addMachine(t *testing.T, l *lab.Lab) *machine {
	t.Helper()
	v, err := l.AddVM(setup.Within(t, vmDeadline), lab.VMConfig{Name: "case-vm", Cards: 1, UserData: setup.CustomData(t, setup.Config(t, l, ownKernel))})
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{VM: v, lab: l, last: time.Now()}
	t.Cleanup(func() {
		if t.Failed() && v.Running() {
			m.logState(t)
		}
		if err := v.Remove(setup.Within(t, time.Minute)); err != nil {
			t.Errorf("remove machine: %v", err)
		}
	})
	return m
}

// consoleTail is how much of a console a failed test shows, in bytes.
const consoleTail = 12000

// console is what a machine's console showed after an offset.
func (m *machine) console(from int64) []byte {
	serial, err := os.ReadFile(m.SerialLog())
	if err != nil {
		return []byte(err.Error())
	}
	return serial[min(max(0, from), int64(len(serial))):]
}

// logState says what a machine is at, for a test that failed.
func (m *machine) logState(t *testing.T) {
	t.Logf("console:\n%s", m.console(m.SerialSize()-consoleTail))
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
// boot only, and ends when it is there. What berth says is to be seen on the
// console, too.
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
StandardOutput=journal+console
ExecStartPre=/bin/sh -c 'echo >/run/hold/reached; read go </run/hold/go'
EOF
systemctl daemon-reload
cat /run/hold/reached >/dev/null
sync
test ! -e ` + setup.SentinelPath

// firstBoot lets a new machine boot up to the start of provisioning and saves
// its state.
func (m *machine) firstBoot(t *testing.T) {
	t.Helper()
	m.awaitAgent(t)
	m.step(t, "booted, agent answers")
	m.sh(t, hold)
	m.step(t, "provisioning is about to start")
	if err := m.SaveState(setup.Within(t, vmDeadline), beforeProvisioning); err != nil {
		t.Fatal(err)
	}
	m.step(t, "state saved")
}

// becameNode lets the machine go on to Ready.
func (m *machine) becameNode(t *testing.T) {
	t.Helper()
	m.release(t)
	setup.CheckStatus(t, m.cse(t))
	m.step(t, "provision-wait returned")
	m.awaitReady(t)
	m.step(t, "Ready")
	setup.StartPod(t, m.lab, vmPod, m.Name)
	m.step(t, "a pod runs")
	m.ask(t, nodeFacts)
	m.files = m.managed(t)
	m.step(t, "facts checked")
}

// vmPod stays on the machine over the reboot.
const vmPod = "vm-pod"

// release lets the held unit go on.
func (m *machine) release(t *testing.T) {
	t.Helper()
	m.sh(t, "echo >/run/hold/go")
}

// reboot proves that a node comes back as it was, with what only a boot can
// apply and what together put in force, and without another run.
func (m *machine) reboot(t *testing.T) {
	t.Helper()
	before := m.sh(t, lastRun)
	started := m.awaitPod(t, metav1.Time{})
	if err := m.Reboot(setup.Within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.step(t, "rebooted, agent answers")
	m.awaitReady(t)
	m.step(t, "Ready after the reboot")
	m.awaitPod(t, started)
	m.ask(t, besideSwap(nodeFacts))
	m.ask(t, m.togetherFacts())
	m.ask(t, nothingToDo(togetherFile))
	m.ask(t, rebootFacts)
	if diff := cmp.Diff(before, m.sh(t, lastRun)); diff != "" {
		t.Errorf("the reboot changed the result (-before +after):\n%s", diff)
	}
	m.step(t, "facts checked")
}

// lastRun prints all that the last run left, with the times of the files.
const lastRun = "ls /var/log/azure/aks; cd /; for f in " + setup.ResultPath + " " + setup.SentinelPath + " /var/lib/berth/timeline.json; do stat -c '%n %i %y %s' $f; cat $f; done"

// shutDown turns the machine off in the orderly way; its disk must be sound.
func (m *machine) shutDown(t *testing.T) {
	t.Helper()
	if err := m.PowerDown(setup.Within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
	m.step(t, "powered down")
	checkDisk(t, m.copyDisk(t))
	m.step(t, "disk checked")
}

func (m *machine) awaitAgent(t *testing.T) {
	t.Helper()
	if err := m.WaitAgent(setup.Within(t, vmDeadline)); err != nil {
		t.Fatal(err)
	}
}

// awaitReady waits until the kubelet of this boot says that it is Ready: the
// word of the last one does not count.
func (m *machine) awaitReady(t *testing.T) {
	t.Helper()
	boot, err := m.BootID(setup.Within(t, vmDeadline))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.lab.WaitNode(setup.Within(t, vmDeadline), m.Name, func(n *corev1.Node) bool {
		return n.Status.NodeInfo.BootID == boot && setup.Ready(n)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitPod waits until the pod's container runs that was not started at old,
// and returns its start.
func (m *machine) awaitPod(t *testing.T, old metav1.Time) metav1.Time {
	t.Helper()
	w, err := m.lab.Client().CoreV1().Pods("default").Watch(setup.Within(t, vmDeadline), metav1.ListOptions{FieldSelector: "metadata.name=" + vmPod})
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
func (m *machine) cse(t *testing.T) setup.Extension {
	t.Helper()
	r, err := m.Exec(setup.Within(t, vmDeadline), nil, "/bin/sh", "-c", nodeconfigutils.CSE)
	return setup.Extension{Message: "[stdout]\n" + string(r.Stdout) + "\n[stderr]\n" + string(r.Stderr), Code: r.ExitCode, Err: err}
}

// sh runs a script in the machine that must succeed and returns what it prints.
func (m *machine) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := m.Output(setup.Within(t, vmDeadline), "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
