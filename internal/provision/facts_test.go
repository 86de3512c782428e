package provision

import (
	"testing"

	"github.com/berth-dev/berth/internal/host/memory"
)

func TestCNIConfigured(t *testing.T) {
	for name, want := range map[string]bool{"10-azure.conflist": true, "x.conf": true, "README": false} {
		h := memory.New()
		if got := cniConfigured(h); got {
			t.Error("configured where there is nothing")
		}
		h.Put("/etc/cni/net.d/"+name, "{}", 0o644)
		if got := cniConfigured(h); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
