package e2e

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// mntUnit stands in for the temporary disk of a virtual machine: it is empty at each boot.
const mntUnit = "[Mount]\nWhat=tempdisk\nWhere=/mnt\nType=tmpfs\nOptions=size=256m\n[Install]\nWantedBy=local-fs.target\n"

// ownDirUnit takes away the directory that the lab mounts at /var/lib/kubelet of each node
// at each boot.
const ownDirUnit = "[Unit]\nBefore=bind-mount.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=umount --lazy /var/lib/kubelet\n[Install]\nWantedBy=multi-user.target\n"

// TestTempDisk: a node has kubelet's data on the temporary disk, says so where there is
// none, comes back from a boot that gives it an empty one, has the data on the disk of the
// system again when nobody asks for the other one any more, and leaves none on either.
func TestTempDisk(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	onDisk := func(c *aksnodeconfigv1.Configuration) {
		c.KubeletConfig.KubeletDiskType = aksnodeconfigv1.KubeletDisk_KUBELET_DISK_TEMP_DISK
	}
	n := machineOf(t, l, "tempdisk", lab.Prebaked, nodeConfig(t, l, onDisk), nil)
	// In a cluster that has just begun, all of the short time would be for the certificate.
	check(t, l.AwaitSigner(within(t, time.Minute)))
	hurried := document(t, nodeConfig(t, l, onDisk, func(c *aksnodeconfigv1.Configuration) { c.CseTimeout = proto.Int32(30) }))
	if err := n.WriteFile("/run/hurried.json", hurried, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := n.Exec(within(t, time.Minute), controllerPath, "provision", "--provision-config", "/run/hurried.json")
	if err != nil || r.Code != 34 || !strings.Contains(string(r.Stderr), "nothing is mounted at /mnt") {
		t.Errorf("without a disk: exit code %d, %v\n%s", r.Code, err, r.Stderr)
	}
	for unit, text := range map[string]string{"mnt.mount": mntUnit, "own-dir.service": ownDirUnit} {
		if err := n.WriteFile("/etc/systemd/system/"+unit, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, n, "sh", "-ec", "systemctl daemon-reload; systemctl enable -q --now "+unit)
	}
	provisioned(t, l, n)
	onTempDisk(t, n)
	planIsEmpty(t, l, n)
	silent(t, n, "systemd-analyze", "verify", "--man=no", "bind-mount.service", "kubelet.service")

	if err := n.Reboot(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	run(t, n, "systemctl", "is-active", "bind-mount.service")
	up := time.Now()
	run(t, n, controllerPath, "provision", "--provision-config", configPath)
	awaitHeartbeat(t, l, n.Name, up)
	onTempDisk(t, n)
	planIsEmpty(t, l, n)
	inUse(t, l, n, onDisk)

	start := time.Now()
	become(t, l, n)
	awaitHeartbeat(t, l, n.Name, start)
	offTempDisk(t, n)
	run(t, n, "systemctl", "stop", "kubelet")
	become(t, l, n, onDisk)
	onTempDisk(t, n)
	out, _ := leaves(t, n, "--force")
	if left := run(t, n, "sh", "-c", "findmnt /var/lib/kubelet; ls -d /mnt/aks /var/lib/kubelet/pki 2>/dev/null || true"); left != "" {
		t.Errorf("after leave: %s\n%s", left, out)
	}
}

// inUse: what something is mounted in stays on the disk, and the node has below it what its
// kubelet needs at a boot; with the disk again, it has it there alone.
func inUse(t *testing.T, l *lab.Lab, n *lab.Node, onDisk func(*aksnodeconfigv1.Configuration)) {
	t.Helper()
	// kubelet takes a directory away that belongs to no pod, until something is mounted in it.
	run(t, n, "sh", "-c", "until mkdir -p /var/lib/kubelet/pods/x/volume && mount -t tmpfs volume /var/lib/kubelet/pods/x/volume; do sleep 0.05; done")
	start := time.Now()
	become(t, l, n)
	awaitHeartbeat(t, l, n.Name, start)
	if at := run(t, n, "findmnt", "-n", "-o", "SOURCE", "/var/lib/kubelet"); !strings.HasPrefix(at, "tempdisk[/aks/kubelet]") {
		t.Errorf("kubelet's data are on %s", at)
	}
	below(t, n, "test -s kubeconfig; test -s pki/kubelet-client-current.pem; test ! -e pods")
	run(t, n, "umount", "/var/lib/kubelet/pods/x/volume")
	run(t, n, "systemctl", "stop", "kubelet")
	become(t, l, n, onDisk)
	onTempDisk(t, n)
}

// offTempDisk: all of kubelet's files are on the disk of the system, and none elsewhere.
func offTempDisk(t *testing.T, n *lab.Node) {
	t.Helper()
	run(t, n, "sh", "-ec", `! findmnt /var/lib/kubelet
test -s /var/lib/kubelet/kubeconfig
test -d /var/lib/kubelet/pods
test ! -e /mnt/aks
systemctl is-active kubelet
test "$(systemctl show -p LoadState --value bind-mount.service)" = not-found`)
	if left := run(t, n, "sh", "-c", "systemctl --failed --no-legend; ls /run/berth /var/lib/berth | grep disk || true"); left != "" {
		t.Errorf("left: %s", left)
	}
}

// below runs a script in kubelet's directory as the disk of the system has it.
func below(t *testing.T, n *lab.Node, script string) string {
	t.Helper()
	return run(t, n, "sh", "-ec", "mkdir -p /run/below; mount --bind / /run/below; (cd /run/below/var/lib/kubelet; "+script+"); umount /run/below")
}

// onTempDisk: kubelet's files are on the disk, and nothing of them is left below it.
func onTempDisk(t *testing.T, n *lab.Node) {
	t.Helper()
	if at := run(t, n, "findmnt", "-n", "-o", "SOURCE", "/var/lib/kubelet"); !strings.HasPrefix(at, "tempdisk[/aks/kubelet]") {
		t.Errorf("kubelet's data are on %s", at)
	}
	run(t, n, "test", "-s", "/mnt/aks/kubelet/kubeconfig")
	run(t, n, "test", "-d", "/mnt/aks/kubelet/pods")
	if left := below(t, n, "find -mindepth 1"); left != "" {
		t.Errorf("left on the disk of the system: %s", left)
	}
}
