package e2e

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestCaseBundle provisions a bare image at a site without network: programs,
// sandbox image and workload come out of one signed file on the disk; every
// address in the configuration leads nowhere.
func TestCaseBundle(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	progs := servePrograms(t, l)
	cfg := nodeConfig(t, l, progs.CutOff)
	files, err := progs.Bundle(within(t, 2*time.Minute), l, t.TempDir(), cfg, importedImage+"="+importLayout(t, l))
	if err != nil {
		t.Fatal(err)
	}
	n := addNode(t, l, lab.NodeConfig{Name: "case-bundle", Flavour: lab.Bare, UserData: customData(t, cfg), Files: files})
	status := runCSE(t, n)
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	checkStatus(t, status())
	runImported(t, l, n)
	planIsEmpty(t, l, n)
	if r := progs.Requests(); len(r) > 0 {
		t.Errorf("requests: %v", r)
	}
	logFetching(t, n)
}
