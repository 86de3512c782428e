package vm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

// dataSize is of no other disk of the machine, in bytes.
const dataSize = 200 << 20

const agentDir = "/root/agent"

// dataDisk has the agent's bootstrap make the disk of kubelet's data. It takes none
// with anything on it, and waits for one that is attached late. What this part does
// to the node goes when the next one turns the clock back.
func (m *machine) dataDisk(t *testing.T) {
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
chmod 0640 /var/lib/kubelet/deep/er/file
cat >`+agentDir+`/config-v1.yaml <<EOF
apiVersion: nodeagent.config.gardener.cloud/v1alpha1
kind: NodeAgentConfiguration
apiServer: {server: "https://127.0.0.1:1", caFile: /etc/kubernetes/certs/ca.crt}
bootstrap: {kubeletDataVolumeSize: `+fmt.Sprint(dataSize)+`}
controllers:
  operatingSystemConfig: {secretName: gardener-node-agent-pool, kubernetesVersion: 1.36.3}
EOF`)
	ctx := setup.Within(t, vmDeadline)
	bootstrap := []string{setup.BerthPath, "agent", "bootstrap", "--config-dir", agentDir}
	if err := m.AttachDisk(ctx, "other", dataSize); err != nil {
		t.Fatal(err)
	}
	m.sh(t, "until test -b /dev/vdc; do :; done; echo data >/dev/vdc")
	r, err := m.Exec(ctx, nil, bootstrap...)
	if err != nil || r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "/dev/vdc") || !strings.Contains(string(r.Stderr), "not empty") {
		t.Fatalf("with data on the only disk of the size: %v, %d\n%s", err, r.ExitCode, r.Stderr)
	}
	m.sh(t, "mkfs.ext4 -q -F /dev/vdc")
	r, err = m.Exec(ctx, nil, bootstrap...)
	if err != nil || r.ExitCode == 0 || !strings.Contains(string(r.Stderr), "type ext4") {
		t.Fatalf("with a file system on the only disk of the size: %v, %d\n%s", err, r.ExitCode, r.Stderr)
	}
	m.step(t, "two refusals")
	if err := m.AttachDisk(ctx, "data", dataSize); err != nil {
		t.Fatal(err)
	}
	m.sh(t, "until test -b /dev/vdd; do :; done")
	if r, err := m.Exec(ctx, nil, bootstrap...); err != nil || r.ExitCode != 0 {
		t.Fatalf("%v, %d\n%s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	m.step(t, "the disk is made")
	m.ask(t, map[string]string{
		"findmnt -rno SOURCE,FSTYPE /var/lib/kubelet":                             "/dev/vdd ext4",
		"findmnt -rno OPTIONS /var/lib/kubelet | grep -o prjquota":                "prjquota",
		"blkid -p -s LABEL -o value /dev/vdd":                                     "KUBEDEV",
		"stat -c '%a %U' /var/lib/kubelet/deep/er/file":                           "640 root",
		"cat /var/lib/kubelet/deep/er/file":                                       "kept",
		"blkid -p -s LABEL -o value /dev/vdc; blkid -p -s TYPE -o value /dev/vdc": "ext4",
		"ls -A /var/lib/berth | grep datadisk":                                    "datadisk.mounted",
		"systemctl is-enabled gardener-node-agent.service":                        "enabled",
	})
	m.sh(t, "umount /var/lib/kubelet")
	if r, err := m.Exec(ctx, nil, bootstrap...); err != nil || r.ExitCode != 0 {
		t.Fatalf("again: %v, %d\n%s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	m.ask(t, map[string]string{
		"findmnt -rno SOURCE /var/lib/kubelet": "/dev/vdd",
		"cat /var/lib/kubelet/deep/er/file":    "kept",
	})
	m.step(t, "mounted again")
	m.sh(t, "mkdir -p /var/lib/kubelet/pods/a && mount -t tmpfs pod /var/lib/kubelet/pods/a")
	r, err = m.Exec(ctx, nil, setup.BerthPath, "agent", "reset")
	if err != nil || r.ExitCode != 4 || !strings.Contains(string(r.Stderr), "/dev/vdd is no longer mounted at /var/lib/kubelet, and the data on it are kept") {
		t.Fatalf("reset: %v, %d\n%s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	m.ask(t, map[string]string{
		"findmnt -rno SOURCE /var/lib/kubelet; true":                      "",
		"cat /var/lib/kubelet/deep/er/file":                               "kept", // what was there before the disk
		"blkid -p -s LABEL -o value /dev/vdd":                             "KUBEDEV",
		"mount /dev/vdd /mnt && cat /mnt/deep/er/file && umount /mnt":     "kept",
		"systemctl show -p LoadState --value gardener-node-agent.service": "not-found",
	})
	m.step(t, "released")
}
