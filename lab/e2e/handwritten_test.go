package e2e

import (
	"bytes"
	"encoding/base64"
	"testing"
	"text/template"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestHandWrittenNode proves the lab itself: a node joins with files that
// cloud-init wrote, without berth, and stays a node over a reboot.
func TestHandWrittenNode(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	start := time.Now()
	n := addNode(t, l, lab.NodeConfig{Name: "hand", UserData: handWritten(t, l, "10.99.0.50"), WithoutBerth: true, IP: addr(t, "10.99.0.50")})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), "hand"); err != nil {
		t.Fatal(err)
	}
	t.Logf("Ready %.1f s after the start of nspawn", time.Since(start).Seconds())
	if err := n.Reboot(within(t, rebootTime)); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitFor(within(t, time.Minute), "systemctl", "is-active", "kubelet"); err != nil {
		t.Fatal(err)
	}
}

// rebootTime is for a reboot: systemd waits 90 s for a process that has missed its
// SIGTERM, as one of a container that is just being made may.
const rebootTime = 150 * time.Second

func handWritten(t *testing.T, l *lab.Lab, ip string) []byte {
	t.Helper()
	ca, err := l.CA()
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := template.ParseFiles("testdata/handwritten.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err = tmpl.Execute(&b, map[string]string{"CA": base64.StdEncoding.EncodeToString(ca), "Token": lab.Token,
		"APIServer": lab.APIServerName, "IP": ip, "Pause": lab.PauseImage})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
