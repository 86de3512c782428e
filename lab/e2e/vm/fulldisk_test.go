package vm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab/e2e/setup"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// fillScript leaves no space where results go, on the disk and in memory.
const fillScript = `set -e
for d in /var/log/azure /run/berth; do
	mkdir -p $d
	mount -t tmpfs -o size=4k,mode=0755 tmpfs $d
	cat /dev/zero >$d/fill 2>/dev/null || true
done`

// fullDisk proves that a result that no disk takes is seen on the console of the
// machine: whole, on a line of its own, and readable by clients.
func (m *machine) fullDisk(t *testing.T) {
	const bad = "/root/bad.json"
	doc := strings.Replace(string(setup.Document(t, setup.Config(t, m.lab))), `"version": "v1"`, `"version": "v8"`, 1)
	if err := m.WriteFile(setup.Within(t, vmDeadline), bad, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	m.sh(t, fillScript)
	from := m.SerialSize()
	r, err := m.Exec(setup.Within(t, vmDeadline), nil, setup.ControllerPath, "provision", "--provision-config="+bad)
	if err != nil || r.ExitCode != 240 {
		t.Errorf("provision: %v, exit code %d\n%s", err, r.ExitCode, r.Stderr)
	}
	line, err := m.WaitSerial(setup.Within(t, 20*time.Second), from, regexp.MustCompile(`(?m)^berth: \{.*\}\r?$`))
	if err != nil {
		t.Fatalf("%v\n%s", err, m.console(from))
	}
	var status nodeconfigutils.CSEStatus
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "berth: ")), &status); err != nil || status.ExitCode != fmt.Sprint(r.ExitCode) {
		t.Errorf("console: %v, %+v\n%s", err, status, line)
	}
	m.sh(t, "umount /var/log/azure /run/berth")
	m.step(t, "result read from the console")
}
