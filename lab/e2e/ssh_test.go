package e2e

import (
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"google.golang.org/protobuf/proto"
)

func withoutKeys(c *aksnodeconfigv1.Configuration) { c.DisablePubkeyAuth = proto.Bool(true) }
func withoutSSH(c *aksnodeconfigv1.Configuration)  { c.EnableSsh = proto.Bool(false) }

// sshd_config of the node, as the distribution has it and as it may be.
const (
	serverConfig = "/etc/ssh/sshd_config"
	earlierFile  = "/etc/ssh/sshd_config.d/00-admin.conf"
	ownFile      = "/etc/ssh/sshd_config.d/00-berth.conf"
)

// makeKey lets root in with a key.
func makeKey(t *testing.T, n *lab.Node) {
	t.Helper()
	run(t, n, "sh", "-c", "mkdir -p -m 700 /root/.ssh && ssh-keygen -q -t ed25519 -N '' -f /root/key && cp /root/key.pub /root/.ssh/authorized_keys")
}

// logIn is what the SSH server says to root with that key: "" if it lets him in.
func logIn(t *testing.T, n *lab.Node) string {
	t.Helper()
	r, err := n.Exec(within(t, 20*time.Second), "ssh", "-i", "/root/key", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=5", "root@127.0.0.1", "true")
	if err != nil {
		t.Fatal(err)
	}
	if r.Code == 0 {
		return ""
	}
	return strings.TrimSpace(string(r.Stderr)) + "."
}

func saysToRoot(t *testing.T, when string, n *lab.Node, want string) {
	t.Helper()
	if got := logIn(t, n); got != want && (want == "" || !strings.Contains(got, want)) {
		t.Errorf("%s: the server says %q, want %q", when, got, want)
	}
}

const (
	denied = "Permission denied"
	absent = "Connection refused"
)

// become applies the node's document with a test's changes; a second plan is empty.
func become(t *testing.T, l *lab.Lab, n *lab.Node, edit ...func(*aksnodeconfigv1.Configuration)) {
	t.Helper()
	if err := n.WriteFile(configPath, document(t, nodeConfig(t, l, edit...)), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, n, berthPath, "apply", "-f", configPath)
	planIsEmpty(t, l, n)
}

func reboot(t *testing.T, n *lab.Node) {
	t.Helper()
	if err := n.Reboot(within(t, rebootTime)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
}

// TestSSH has a real server refuse keys, and be off: now and after a boot, and not
// any longer than somebody wants it.
func TestSSH(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	n := addNode(t, l, lab.NodeConfig{Name: "ssh", UserData: customData(t, nodeConfig(t, l))})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	makeKey(t, n)
	saysToRoot(t, "as the image has it", n, "")
	t.Run("keys", func(t *testing.T) { keysOff(t, l, n) })
	t.Run("block", func(t *testing.T) { keysOffInBlock(t, l, n) })
	t.Run("off", func(t *testing.T) { sshOff(t, l, n) })
	t.Run("socket", func(t *testing.T) { sshSocketOff(t, l, n) })
}

func keysOff(t *testing.T, l *lab.Lab, n *lab.Node) {
	become(t, l, n, withoutKeys)
	saysToRoot(t, "without keys", n, denied)
	run(t, n, "sh", "-c", "echo PubkeyAuthentication yes >"+ownFile+" && systemctl reload ssh")
	eventually(t, "the server lets keys in", 10*time.Second, func() bool { return logIn(t, n) == "" })
	become(t, l, n, withoutKeys)
	saysToRoot(t, "without keys again", n, denied)
	before := run(t, n, "systemctl", "show", "-p", "InvocationID", "ssh")
	if err := n.WriteFile(earlierFile, []byte("PubkeyAuthentication yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := n.Exec(within(t, time.Minute), berthPath, "apply", "-f", configPath)
	if err != nil || r.Code != 1 || !strings.Contains(string(r.Stderr), `"yes" is in force`) {
		t.Errorf("another file says yes: %v, exit code %d\n%s", err, r.Code, r.Stderr)
	}
	run(t, n, "rm", earlierFile)
	saysToRoot(t, "after that", n, denied)
	if after := run(t, n, "systemctl", "show", "-p", "InvocationID", "ssh"); after != before {
		t.Errorf("the server was started again: %s, %s", before, after)
	}
	reboot(t, n)
	saysToRoot(t, "after a boot", n, denied)
	become(t, l, n)
	saysToRoot(t, "with keys", n, "")
}

// keysOffInBlock: a configuration that includes nothing gets the line itself.
func keysOffInBlock(t *testing.T, l *lab.Lab, n *lab.Node) {
	original := run(t, n, "cat", serverConfig)
	run(t, n, "sh", "-c", "grep -v ^Include "+serverConfig+" >/root/own; echo PubkeyAuthentication yes >>/root/own; cp /root/own "+serverConfig)
	become(t, l, n, withoutKeys)
	saysToRoot(t, "without keys", n, denied)
	if got := run(t, n, "head", "-3", serverConfig); got != "# BEGIN berth keys\nPubkeyAuthentication no\n# END berth keys\n" {
		t.Errorf("it begins with %q", got)
	}
	become(t, l, n)
	saysToRoot(t, "with keys", n, "")
	if got := run(t, n, "cat", serverConfig); got != run(t, n, "cat", "/root/own") {
		t.Errorf("the configuration is now\n%s", got)
	}
	if err := n.WriteFile(serverConfig, []byte(original), 0o644); err != nil {
		t.Fatal(err)
	}
}

func sshOff(t *testing.T, l *lab.Lab, n *lab.Node) {
	become(t, l, n, withoutSSH)
	saysToRoot(t, "off", n, absent)
	reboot(t, n)
	for _, unit := range []string{"ssh.service", "sshd.service", "ssh.socket"} {
		if r, err := n.Exec(within(t, 20*time.Second), "systemctl", "start", unit); err != nil || r.Code == 0 {
			t.Errorf("%s could be started: %v, %s", unit, err, r.Stderr)
		}
	}
	saysToRoot(t, "after a boot", n, absent)
	planIsEmpty(t, l, n)
	become(t, l, n)
	saysToRoot(t, "on again", n, "")
}

// sshSocketOff has systemd listen in the server's place, as Ubuntu has it from 22.10
// on: off is off there, too, and afterwards it listens again.
func sshSocketOff(t *testing.T, l *lab.Lab, n *lab.Node) {
	run(t, n, "systemctl", "disable", "--now", "ssh.service")
	saysToRoot(t, "with nobody there", n, absent)
	run(t, n, "systemctl", "enable", "--now", "ssh.socket")
	saysToRoot(t, "by its socket", n, "")
	become(t, l, n, withoutSSH)
	saysToRoot(t, "off", n, absent)
	reboot(t, n)
	saysToRoot(t, "after a boot", n, absent)
	if r, err := n.Exec(within(t, 20*time.Second), "systemctl", "start", "ssh.socket"); err != nil || r.Code == 0 {
		t.Errorf("the socket could be started: %v, %s", err, r.Stderr)
	}
	planIsEmpty(t, l, n)
	become(t, l, n)
	saysToRoot(t, "on again", n, "")
	for unit, want := range map[string]string{"ssh.socket": "enabled", "ssh.service": "disabled"} {
		r, err := n.Exec(within(t, 20*time.Second), "systemctl", "is-enabled", unit)
		if got := strings.TrimSpace(string(r.Stdout)); err != nil || got != want {
			t.Errorf("%s is %s, want %s (%v)", unit, got, want, err)
		}
	}
}
