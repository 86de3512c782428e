package vm

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
)

const (
	joinDir  = "/etc/berth"
	joinFile = joinDir + "/node.json"
)

// swapDisk is the size of a disk that a machine swaps to, in bytes.
const swapDisk = 24 << 20

// ownSwap gives a machine three areas as machines have them: a file in /etc/fstab, a disk
// there by its UUID, and a file with a unit of type swap.
const ownSwap = `set -e
until test -b /dev/vdc; do :; done
for f in /var/first.swap /var/second.swap; do
	dd if=/dev/zero of=$f bs=1M count=16 status=none
	chmod 600 $f
	mkswap -q $f
done
mkswap -q -U 5be2a6a0-1f1c-4a4e-9d0c-0123456789ab /dev/vdc
udevadm settle
cp -a /etc/fstab /root/fstab
cat >>/etc/fstab <<'EOF'
/var/first.swap none swap sw,pri=7 0 0
UUID=5be2a6a0-1f1c-4a4e-9d0c-0123456789ab none swap sw,nofail 0 0
EOF
cat >/etc/systemd/system/var-second.swap.swap <<'EOF'
[Swap]
What=/var/second.swap
Priority=3
[Install]
WantedBy=swap.target
EOF
systemctl daemon-reload
systemctl enable -q var-second.swap.swap
systemctl start swap.target`

// swapState prints all that says how a machine swaps.
const swapState = `swapon --show=NAME,TYPE,SIZE,PRIO --bytes --noheadings | sort
systemctl list-units --all --plain --no-legend --type swap | awk '{print $1, $2, $3, $4}' | sort
systemctl is-active swap.target
cat /etc/fstab
find /etc/systemd/system /run/systemd/generator -name '*.swap' -printf '%p %l %m\n' | sort
cat /etc/systemd/system/*.swap`

// joinsBesideSwap: a machine that swaps joins with the defaults of kubelet, which starts
// beside no swap, and swaps again as before when it has left.
func (m *machine) joinsBesideSwap(t *testing.T) {
	t.Helper()
	nodes := m.lab.Client().CoreV1().Nodes()
	if err := nodes.Delete(setup.Within(t, time.Minute), m.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := m.AttachDisk(setup.Within(t, vmDeadline), "swap", swapDisk); err != nil {
		t.Fatal(err)
	}
	m.sh(t, ownSwap)
	before := m.sh(t, swapState)
	m.ask(t, map[string]string{"swapon --show=NAME --noheadings | sort | xargs": "/dev/vdc /var/first.swap /var/second.swap"})
	m.joinFiles(t)
	m.step(t, "swaps to a disk and two files")
	m.ask(t, map[string]string{setup.BerthPath + " join -f " + joinFile + " >/var/tmp/join.log 2>&1 || cat /var/tmp/join.log": ""})
	m.ask(t, map[string]string{
		"swapon --show --noheadings":                                                               "",
		"systemctl is-active kubelet containerd | xargs":                                           "active active",
		"systemctl show -p NRestarts --value kubelet":                                              "0",
		"systemctl daemon-reload; systemctl start swap.target":                                     "Failed to start swap.target: Unit swap.target is masked.",
		"systemctl --failed --no-legend":                                                           "",
		"rm " + joinDir + "/token; " + setup.BerthPath + " plan -f " + joinFile + " 2>&1; echo $?": "no changes\n0",
	})
	m.step(t, "joined without swap")
	m.ask(t, map[string]string{setup.BerthPath + " leave --force --kubeconfig " + joinDir + "/admin.conf >/var/tmp/leave.log 2>&1 || cat /var/tmp/leave.log": ""})
	if after := m.sh(t, swapState); after != before {
		t.Errorf("swap before:\n%s\nafter:\n%s", before, after)
	}
	if _, err := nodes.Get(setup.Within(t, time.Minute), m.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node: %v", err)
	}
	m.step(t, "left, and swaps again")
	m.sh(t, "set -e; systemctl disable -q var-second.swap.swap; swapoff -a; cp -a /root/fstab /etc/fstab; rm -r /etc/systemd/system/var-second.swap.swap /var/*.swap "+joinDir+"; systemctl daemon-reload")
}

// joinFiles are what berth join reads of its operator.
func (m *machine) joinFiles(t *testing.T) {
	t.Helper()
	ca, err := m.lab.CA()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := os.ReadFile(m.lab.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(&v1alpha1.NodeConfig{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
		Cluster:    v1alpha1.Cluster{Server: fmt.Sprintf("https://%s:443", m.lab.Gateway()), CAFile: joinDir + "/ca.pem"},
		Identity:   v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{TokenFile: joinDir + "/token"}},
		Components: v1alpha1.Components{Kubernetes: v1alpha1.Kubernetes{Version: m.lab.KubernetesVersion()}, SandboxImage: lab.PauseImage},
		Networking: v1alpha1.Networking{Mode: v1alpha1.NetworkBridge, ClusterDNS: []string{"10.96.0.10"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.sh(t, "mkdir -p "+joinDir)
	for name, content := range map[string][]byte{"ca.pem": ca, "admin.conf": admin, "token": []byte(lab.Token + "\n"), "node.json": document} {
		if err := m.WriteFile(setup.Within(t, vmDeadline), joinDir+"/"+name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
