package tempdisk

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/component/kubelet"
)

func TestFiles(t *testing.T) {
	st := golden.State(t, append(Files(Settings{Program: "/usr/bin/berth"}), Service(nil)))
	service := string(golden.File(t, st, unitFile).Content.Data())
	for _, line := range []string{"RequiresMountsFor=/mnt", "Before=kubelet.service", "RemainAfterExit=yes", "ExecStart=/usr/bin/berth node temp-disk", "ExecStop=/usr/bin/berth node temp-disk --stop"} {
		if !strings.Contains(service, "\n"+line+"\n") {
			t.Errorf("no %s in\n%s", line, service)
		}
	}
	waits := string(golden.File(t, st, kubelet.DropInDir+"/10-bindmount.conf").Content.Data())
	if !strings.Contains(waits, "\nRequires=bind-mount.service\nAfter=bind-mount.service\n") {
		t.Errorf("kubelet does not wait:\n%s", waits)
	}
}

func TestCheck(t *testing.T) {
	c := Check(Settings{Patience: time.Minute})
	if c.Mount != "/mnt" || c.Timeout != time.Minute || c.Validate() != nil {
		t.Errorf("%+v: %v", c, c.Validate())
	}
}
