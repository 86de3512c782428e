package converge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host/memory"
)

// TestJournalKeepsClaimedDirectories: containerd ends when the empty directory
// that it watches goes away.
func TestJournalKeepsClaimedDirectories(t *testing.T) {
	h := memory.New()
	h.PutDir("/etc/cni/net.d")
	h.PutDir("/etc/other")
	h.Put(journalPath, `{"owner":"aks","dirs":["/etc/cni/net.d","/etc/other"]}`, 0o600)
	h.Put(ledgerPath, `{"version":1,"entries":{"/etc/cni/net.d":{"owners":["aks"]}}}`, 0o600)
	j, err := loadJournal(h)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/etc/other"}, j.Dirs); diff != "" {
		t.Error(diff)
	}
	if err := j.clear(h); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Lstat("/etc/cni/net.d"); err != nil {
		t.Error(err)
	}
	if _, err := h.Lstat("/etc/other"); err == nil {
		t.Error("an empty directory that was never committed is left over")
	}
}
