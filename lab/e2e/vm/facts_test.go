package vm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/lab/e2e/setup"
)

// nodeFacts are questions about a machine that is a node, and the answers.
var nodeFacts = map[string]string{
	"hostname":                                "case-vm",
	"stat -fc %T /sys/fs/cgroup":              "cgroup2fs",
	"findmnt -no FSTYPE /":                    "ext4",
	"swapon --show --noheadings":              "",
	"sysctl -n vm.swappiness":                 "7",
	"sysctl -n fs.file-max":                   "1048576",
	"systemctl --failed --no-legend":          "",
	"systemctl list-timers --all --no-legend": "",
	"systemctl is-system-running --wait":      "running",
	"systemctl is-active aks-node-controller kubelet containerd | xargs":                                  "active active active",
	"systemctl show -p NRestarts --value aks-node-controller kubelet containerd | xargs":                  "0 0 0",
	"dumpe2fs -h /dev/vda 2>/dev/null | grep -c has_journal":                                              "1",
	"grep -owE 'cpu|memory|pids' /sys/fs/cgroup/kubepods.slice/cgroup.controllers | xargs":                "cpu memory pids",
	"systemd-analyze verify kubelet.service containerd.service aks-node-controller.service 2>&1; echo $?": "0",
	// A container is a scope of systemd's in kubelet's slices.
	`sed 's/pod[0-9a-f_]\{30,\}/podID/; s/containerd-[0-9a-f]\{64\}/containerd-ID/' /proc/$(pgrep -x pause | head -1)/cgroup`: "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podID.slice/cri-containerd-ID.scope",
	// What the files say is what the kernel has.
	differentSysctls: "",
	"sed '/^#/d' /etc/modules-load.d/kubernetes.conf | while read m; do grep -q \"^$m \" /proc/modules || echo $m; done": "",
}

// differentSysctls prints the parameters that are not as berth's files say.
const differentSysctls = `sed -n 's/^\([a-z][^ =]*\) *= *\(.*\)$/\1 \2/p' /etc/sysctl.d/99-force-bridge-forward.conf /etc/sysctl.d/999-sysctl-aks.conf |
while read key want; do got=$(sysctl -n $key); test "$got" = "$want" || echo $key $got; done`

// rebootFacts prove that systemd's own services applied the settings in this
// boot, and that berth found nothing to do in it.
var rebootFacts = map[string]string{
	"systemctl show -p ActiveState -p Result --value systemd-sysctl systemd-modules-load | sort -u | xargs":           "active success",
	"journalctl -b -o cat -t aks-node-controller -g '^nothing to do: provisioning of this machine has ended' | wc -l": "1",
}

// recoveredFacts are about a machine that has recovered from a power cut: the
// kernel replayed the journal, nothing is left over, nothing is left to do.
var recoveredFacts = map[string]string{
	"dmesg | grep -c 'EXT4-fs (vda): recovery complete'":                                                                "1",
	"dmesg | grep -c 'EXT4-fs error'":                                                                                   "0",
	setup.BerthPath + " plan -f " + setup.ConfigPath + " 2>&1; echo $?":                                                 "no changes\n0",
	"find /etc /opt /usr/local /var/lib/berth /var/lib/kubelet /var/log /root -xdev -name '*.berth.*' -o -name '*.new'": "",
	"ls -d /var/lib/berth/.berth.* 2>/dev/null":                                                                         "",
	"systemctl --failed --no-legend":                                                                                    "",
	"systemctl show -p NRestarts --value aks-node-controller kubelet containerd | xargs":                                "0 0 0",
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
