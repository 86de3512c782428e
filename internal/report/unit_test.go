package report

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/exitcode"
)

// TestServiceUnit: the unit starts a run again for no code that is a result.
func TestServiceUnit(t *testing.T) {
	b, err := os.ReadFile("../../packaging/systemd/" + ServiceUnit)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1"} // a wrong command line
	for _, c := range exitcode.Registry() {
		if c.Number != exitcode.OK {
			want = append(want, strconv.Itoa(c.Number))
		}
	}
	if line := "RestartPreventExitStatus=" + strings.Join(want, " ") + "\n"; !strings.Contains(string(b), line) {
		t.Errorf("the unit should say %s", line)
	}
	for _, line := range []string{
		"After=" + strings.Join(CloudInitUnits, " ") + " network-online.target", "Wants=network-online.target", "ConditionPathExists=" + ConfigPath,
		"Restart=on-failure", "WantedBy=cloud-init.target", "RemainAfterExit=yes", "NotifyAccess=main",
	} {
		if !slices.Contains(strings.Split(string(b), "\n"), line) {
			t.Errorf("no %s", line)
		}
	}
	if strings.Contains(string(b), "DefaultDependencies") {
		t.Error("default dependencies are off")
	}
}
