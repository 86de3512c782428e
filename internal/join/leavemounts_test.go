package join

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/tempdisk"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// TestLeaveKeepsWhatOthersMounted: neither a mount nor what is in it is touched.
func TestLeaveKeepsWhatOthersMounted(t *testing.T) {
	w := newWorld(t)
	w.join(desired.OwnerAKS)
	w.m.PutDir("/var/lib/kubelet/disk")
	if err := w.m.Mount(t.Context(), host.Mount{Source: "tmpfs", Target: "/var/lib/kubelet/disk", Type: "tmpfs"}); err != nil {
		t.Fatal(err)
	}
	w.m.Put("/var/lib/kubelet/disk/data", "precious", 0o600)
	if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if data, err := w.m.ReadFile("/var/lib/kubelet/disk/data"); string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestLeaveUnmounts: what kubelet and the runtime mounted for pods goes. What was mounted at
// such a path before berth came stays, and so does what other containers have.
// watched says what is in kubelet's directory when a unit stops.
type watched struct {
	host.Host
	unit string
	seen [][]string
}

func (h *watched) StopUnit(ctx context.Context, name string) error {
	if name == h.unit {
		names, err := h.ReadDir("/var/lib/kubelet/pods/u1")
		if err != nil {
			return err
		}
		h.seen = append(h.seen, names)
	}
	return h.Host.StopUnit(ctx, name)
}

// What the temporary disk gives back comes to the disk of the system, and goes from there
// with the rest: its service stops before.
func TestLeaveTakesTheTemporaryDiskAway(t *testing.T) {
	w := newWorld(t)
	w.join(desired.OwnerAKS,
		&desired.File{Path: "/etc/systemd/system/" + tempdisk.Unit, Content: desired.Text("[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/opt/bin/kubelet\n"), Mode: 0o644, Life: desired.Managed},
		&desired.Unit{Base: desired.Base{After: []desired.ID{"file:/etc/systemd/system/" + tempdisk.Unit}}, Name: tempdisk.Unit, Activation: desired.Started})
	if !w.active(tempdisk.Unit) {
		t.Fatal("it does not run")
	}
	h := &watched{Host: w.h, unit: tempdisk.Unit}
	w.h = h
	if out, err := w.leave(forced); err != nil || len(out.Stayed) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if diff := cmp.Diff([][]string{{"etc-hosts", "volumes"}}, h.seen); diff != "" {
		t.Error(diff)
	}
	w.isAsBefore()
}

func TestLeaveUnmounts(t *testing.T) {
	const tasks = "/run/containerd/io.containerd.runtime.v2.task/"
	for _, tc := range []struct {
		target       string
		before, stay bool
	}{
		{target: tasks + "k8s.io/2/rootfs"},
		{target: "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/2/shm"},
		{target: "/run/netns/cni-2"},
		{target: "/var/lib/kubelet/plugins/kubernetes.io/csi/disk"},
		{target: "/var/lib/kubelet/pods/u2/volumes/token"},
		{target: tasks + "default/nerdctl/rootfs", before: true, stay: true},
		{target: tasks + "default/later/rootfs", stay: true},
		{target: "/run/netns/cni-theirs", before: true, stay: true},
		{target: "/var/lib/kubelet/plugins/theirs", before: true, stay: true},
		{target: tasks + "k8s.io/theirs/rootfs", before: true, stay: true},
	} {
		t.Run(tc.target, func(t *testing.T) {
			w := newWorld(t)
			mount := func() {
				w.m.PutDir(tc.target)
				if err := w.m.Mount(t.Context(), host.Mount{Source: "tmpfs", Target: tc.target, Type: "tmpfs"}); err != nil {
					t.Fatal(err)
				}
			}
			if tc.before {
				mount()
			}
			w.join(desired.OwnerAKS)
			if !tc.before {
				mount()
			}
			if _, err := w.leave(forced); err != nil {
				t.Error(err)
			}
			mounts, err := w.m.Mounts(t.Context())
			if stays := slices.ContainsFunc(mounts, func(m host.Mount) bool { return m.Target == tc.target }); err != nil || stays != tc.stay {
				t.Errorf("stays: %v, %v", stays, err)
			}
		})
	}
}
