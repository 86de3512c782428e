package provision

import (
	"context"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/google/go-cmp/cmp"
)

// TestGatherAsksFirst: the rest is read while the address is waited for.
func TestGatherAsksFirst(t *testing.T) {
	h := memory.New()
	h.Put("/usr/bin/containerd", "x", 0o755)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	asked, read := make(chan struct{}), make(chan struct{})
	either := func(c chan struct{}) bool {
		select {
		case <-c:
			return true
		case <-ctx.Done():
			return false
		}
	}
	f, err := Gather(ctx, h, FactsSource{
		Address: func(context.Context) string {
			close(asked)
			if !either(read) {
				return ""
			}
			return "10.0.0.4"
		},
		Version: func(context.Context, host.Host, string) (string, error) {
			defer close(read)
			if !either(asked) {
				return "", ctx.Err()
			}
			return "2.0.0", nil
		},
	})
	if err != nil || f.NodeIP != "10.0.0.4" || f.ContainerdVersion != "2.0.0" {
		t.Errorf("%+v, %v", f, err)
	}
}

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

func TestGatherLooksAtTheImage(t *testing.T) {
	h := memory.New()
	for range 2 { // nothing of it first
		f, err := Gather(context.Background(), h, FactsSource{})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		resolved := false
		if _, err := h.Lstat("/opt/bin"); err == nil {
			want, resolved = []string{"kubectl-1.34.2", "kubelet-1.33.1", "kubelet-1.34.2"}, true
		}
		if diff := cmp.Diff(want, f.VersionedPrograms); diff != "" || f.Resolved != resolved {
			t.Errorf("resolved %v, %s", f.Resolved, diff)
		}
		for _, name := range []string{"kubelet", "kubelet-1.34.2", "kubelet-1.33.1", "kubectl-1.34.2", "crictl"} {
			h.Put("/opt/bin/"+name, "", 0o755)
		}
		h.Put("/run/systemd/resolve/resolv.conf", "nameserver 10.0.0.1\n", 0o644)
	}
}
