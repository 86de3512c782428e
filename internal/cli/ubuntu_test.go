package cli

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host/memory"
)

// ubuntuMachine is the tree of an Ubuntu 24.04 as far as what berth puts there meets it:
// /usr merged, network by netplan, and profiles of AppArmor.
func ubuntuMachine(t *testing.T) *memory.Host {
	h := ownMachine(t)
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		h.PutDir("/usr/" + dir)
		h.PutLink("usr/"+dir, "/"+dir, 0)
	}
	h.Put("/usr/lib/os-release", "PRETTY_NAME=\"Ubuntu 24.04.3 LTS\"\nNAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n", 0o644)
	h.PutLink("../usr/lib/os-release", "/etc/os-release", 0)
	h.Put("/etc/hostname", "edge-1\n", 0o644)
	h.Put("/etc/netplan/50-cloud-init.yaml", "network: {version: 2, ethernets: {eth0: {dhcp4: true}}}\n", 0o600)
	h.Put("/etc/apparmor.d/usr.sbin.rsyslogd", "profile rsyslogd /usr/sbin/rsyslogd { }\n", 0o644)
	h.Put("/etc/apt/apt.conf.d/20auto-upgrades", "APT::Periodic::Unattended-Upgrade \"1\";\n", 0o644)
	h.Put("/etc/fstab", "LABEL=cloudimg-rootfs / ext4 discard,errors=remount-ro 0 1\n/swap.img none swap sw 0 0\n", 0o644)
	h.PutLink("../run/systemd/resolve/stub-resolv.conf", "/etc/resolv.conf", 0)
	h.Put("/etc/sysctl.d/10-network-security.conf", "net.ipv4.conf.all.rp_filter=2\n", 0o644)
	h.Put("/usr/lib/systemd/system/ssh.service", "[Service]\nExecStart=/usr/sbin/sshd -D\n", 0o644)
	return h
}

// An image of Ubuntu takes a NodeConfig under --root: what is the distribution's stays as
// it is, links included, and a second run has nothing to do.
func TestApplyToUbuntuRoot(t *testing.T) {
	h := ubuntuMachine(t)
	before := h.Tree("/")
	code, planned, stderr := invoke(h, "berth", "plan", "-f", ownDocument, "--root", "/mnt")
	if code != exitcode.Pending || !strings.Contains(planned, "create file:/etc/systemd/system/kubelet.service") {
		t.Fatalf("plan: code %d: %s%s", code, planned, stderr)
	}
	if diff := cmp.Diff(before, h.Tree("/")); diff != "" {
		t.Errorf("the plan changed something: %s", diff)
	}
	if code, _, stderr := invoke(h, "berth", "apply", "-f", ownDocument, "--root", "/mnt"); code != 0 {
		t.Fatalf("apply: code %d: %s", code, stderr)
	}
	after := h.Tree("/")
	for _, p := range []string{"/etc/systemd/system/kubelet.service", "/etc/systemd/system/multi-user.target.wants/kubelet.service", "/etc/kubernetes"} {
		if after[p] == "" {
			t.Errorf("%s is missing", p)
		}
	}
	kept := maps.Clone(after)
	maps.DeleteFunc(kept, func(p, _ string) bool { return before[p] == "" })
	if diff := cmp.Diff(before, kept); diff != "" {
		t.Errorf("what was there has changed: %s", diff)
	}
	if code, stdout, _ := invoke(h, "berth", "plan", "-f", ownDocument, "--root", "/mnt"); code != 0 || !strings.HasSuffix(stdout, "no changes\n") {
		t.Errorf("second plan: code %d: %s", code, stdout)
	}
}
