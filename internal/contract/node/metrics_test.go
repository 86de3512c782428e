package node

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/desired"
)

// containerd shows its metrics to nobody: those of the published program's are for the
// whole network.
func TestNoMetrics(t *testing.T) {
	for _, name := range documents {
		f, ok := translated(t, decoded(t, name), machineOf(t)).Lookup(desired.FileID(containerd.ConfigFile)).(*desired.File)
		if !ok || strings.Contains(string(f.Content.Data()), "metrics") {
			t.Errorf("%s: %v", name, f)
		}
	}
}
