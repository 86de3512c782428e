package vm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

// The sizes of the disks that are attached, in bytes: no other disk of the machine has one
// of them.
const (
	refusedSize = 100 << 20
	dataSize    = 200 << 20
)

const agentDir = "/root/agent"

// makeDisk is the command that makes the disk of kubelet's data.
var makeDisk = []string{setup.BerthPath, "agent", "bootstrap", "--config-dir", agentDir}

// dataDisk has the agent's bootstrap make the disk of kubelet's data. It takes none
// with anything on it and neither of two, and waits for one that is attached late. What
// this part does to the node goes when the next one turns the clock back.
func (m *machine) dataDisk(t *testing.T) {
	t.Helper()
	m.agentOfDisk(t)
	m.refusedDisks(t)
	m.lateDisk(t)
	m.diskAgain(t)
	m.diskReleased(t)
}

// agentOfDisk has the machine as one that an agent is to set up, with something in
// kubelet's directory.
func (m *machine) agentOfDisk(t *testing.T) {
	t.Helper()
	m.sh(t, `set -e
systemctl stop kubelet containerd
mkdir -p `+agentDir+` /var/lib/gardener-node-agent/credentials
echo `+m.Name+` >/var/lib/gardener-node-agent/machine-name
echo abcdef.0123456789abcdef >/var/lib/gardener-node-agent/credentials/bootstrap-token
for at in $(findmnt -rno TARGET | grep ^/var/lib/kubelet/ | sort -r); do umount "$at"; done
rm -rf /var/lib/kubelet/pods
mkdir -p /var/lib/kubelet/deep/er
echo kept >/var/lib/kubelet/deep/er/file
chmod 0640 /var/lib/kubelet/deep/er/file`)
}

// wantsDisk says which size the disk has.
func (m *machine) wantsDisk(t *testing.T, size int64) {
	t.Helper()
	m.sh(t, `cat >`+agentDir+`/config-v1.yaml <<EOF
apiVersion: nodeagent.config.gardener.cloud/v1alpha1
kind: NodeAgentConfiguration
apiServer: {server: "https://127.0.0.1:1", caFile: /etc/kubernetes/certs/ca.crt}
bootstrap: {kubeletDataVolumeSize: `+fmt.Sprint(size)+`}
controllers:
  operatingSystemConfig: {secretName: gardener-node-agent-pool, kubernetesVersion: 1.36.3}
EOF`)
}

// attach puts a blank disk into the machine and waits until it has its name there.
func (m *machine) attach(t *testing.T, name string, size int64, device string) {
	t.Helper()
	if err := m.AttachDisk(setup.Within(t, vmDeadline), name, size); err != nil {
		t.Fatal(err)
	}
	m.sh(t, "until test -b "+device+"; do :; done")
}

// refusedDisks are one with data, one with a file system, and two that are blank.
func (m *machine) refusedDisks(t *testing.T) {
	t.Helper()
	m.wantsDisk(t, refusedSize)
	refused := func(what string, words ...string) {
		t.Helper()
		r, err := m.Exec(setup.Within(t, vmDeadline), nil, makeDisk...)
		if err != nil || r.ExitCode == 0 {
			t.Fatalf("%s: %v, %d\n%s", what, err, r.ExitCode, r.Stderr)
		}
		for _, w := range words {
			if !strings.Contains(string(r.Stderr), w) {
				t.Fatalf("%s: no %q in\n%s", what, w, r.Stderr)
			}
		}
	}
	m.attach(t, "used", refusedSize, "/dev/vdc")
	m.sh(t, "echo data >/dev/vdc")
	refused("data on the only disk of the size", "/dev/vdc", "not empty")
	m.sh(t, "mkfs.ext4 -q -F /dev/vdc")
	refused("a file system on the only disk of the size", "type ext4")
	m.attach(t, "first", refusedSize, "/dev/vdd")
	m.attach(t, "second", refusedSize, "/dev/vde")
	refused("two blank disks of the size", "/dev/vdd, /dev/vde")
	m.step(t, "three refusals")
}

// lateDisk is attached when bootstrap waits for it: then bootstrap watches /dev.
func (m *machine) lateDisk(t *testing.T) {
	t.Helper()
	m.wantsDisk(t, dataSize)
	m.sh(t, `set -e
systemd-run --quiet --unit=late --property=RemainAfterExit=yes `+strings.Join(makeDisk, " ")+`
until ls -l /proc/$(systemctl show -p MainPID --value late)/fd | grep -q inotify; do
	systemctl is-active --quiet late || { journalctl --no-pager -u late; exit 1; }
	sleep 0.1
done`)
	m.step(t, "waits for a disk")
	m.attach(t, "data", dataSize, "/dev/vdf")
	m.ask(t, map[string]string{
		"while test $(systemctl show -p SubState --value late) = running; do sleep 0.1; done; systemctl show -p SubState -p Result late | sort | xargs": "Result=success SubState=exited",
	})
	m.step(t, "the disk is made")
	m.ask(t, map[string]string{
		"findmnt -rno SOURCE,FSTYPE /var/lib/kubelet":                             "/dev/vdf ext4",
		"findmnt -rno OPTIONS /var/lib/kubelet | grep -o prjquota":                "prjquota",
		"blkid -p -s LABEL -o value /dev/vdf":                                     "KUBEDEV",
		"stat -c '%a %U' /var/lib/kubelet/deep/er/file":                           "640 root",
		"cat /var/lib/kubelet/deep/er/file":                                       "kept",
		"blkid -p -s LABEL -o value /dev/vdc; blkid -p -s TYPE -o value /dev/vdc": "ext4",
		"blkid -p /dev/vdd /dev/vde; echo $?":                                     "2",
		"ls -A /var/lib/berth | grep datadisk":                                    "datadisk.mounted",
		"systemctl is-enabled gardener-node-agent.service":                        "enabled",
	})
}

// diskAgain: the next call finds the disk by its label.
func (m *machine) diskAgain(t *testing.T) {
	t.Helper()
	m.sh(t, "umount /var/lib/kubelet")
	if r, err := m.Exec(setup.Within(t, vmDeadline), nil, makeDisk...); err != nil || r.ExitCode != 0 {
		t.Fatalf("again: %v, %d\n%s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	m.ask(t, map[string]string{
		"findmnt -rno SOURCE /var/lib/kubelet": "/dev/vdf",
		"cat /var/lib/kubelet/deep/er/file":    "kept",
	})
	m.step(t, "mounted again")
}

// diskReleased: the reset of the agent unmounts the disk and keeps what is on it.
func (m *machine) diskReleased(t *testing.T) {
	t.Helper()
	m.sh(t, "mkdir -p /var/lib/kubelet/pods/a && mount -t tmpfs pod /var/lib/kubelet/pods/a")
	r, err := m.Exec(setup.Within(t, vmDeadline), nil, setup.BerthPath, "agent", "reset")
	if err != nil || r.ExitCode != 4 || !strings.Contains(string(r.Stderr), "/dev/vdf is no longer mounted at /var/lib/kubelet, and the data on it are kept") {
		t.Fatalf("reset: %v, %d\n%s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	m.ask(t, map[string]string{
		"findmnt -rno SOURCE /var/lib/kubelet; true":                      "",
		"cat /var/lib/kubelet/deep/er/file":                               "kept", // what was there before the disk
		"blkid -p -s LABEL -o value /dev/vdf":                             "KUBEDEV",
		"mount /dev/vdf /mnt && cat /mnt/deep/er/file && umount /mnt":     "kept",
		"systemctl show -p LoadState --value gardener-node-agent.service": "not-found",
	})
	m.step(t, "released")
}
