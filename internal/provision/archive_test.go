package provision

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/report"
)

// TestOldResultsAreFew: an operator who runs it again and again does not fill
// the disk, and what is not ours stays.
func TestOldResultsAreFew(t *testing.T) {
	h := machineOf(`{}`)
	foreign := []string{"provision.json.bak", "provision.20260101.json", "provision.old.json"}
	for _, n := range foreign {
		h.Put(report.AKSLogDir+"/"+n, "kept", 0o644)
	}
	for day := range 9 {
		h.Put(fmt.Sprintf("%s/provision.2020010%dT000000.000000000Z.json", report.AKSLogDir, day+1), "old", 0o600)
	}
	for range 2 {
		if code := Provision(t.Context(), options(h)); code != 0 {
			t.Fatalf("code %d", code)
		}
	}
	names, err := h.ReadDir(report.AKSLogDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range foreign {
		if !slices.Contains(names, n) {
			t.Errorf("%s is gone", n)
		}
	}
	archived := slices.DeleteFunc(names, func(n string) bool { return !isArchive(n) })
	if len(archived) != 5 || archived[0] != "provision.20200106T000000.000000000Z.json" {
		t.Errorf("archived %v", archived)
	}
}
