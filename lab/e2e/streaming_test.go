package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

// The services of an image that streams, and how its program was called.
const (
	streamedDir   = "/var/lib/containerd/lab-streamed"
	streamProgram = "/opt/lab/snapshotter"
	streamSetup   = "/opt/acr/tools/mirror/setup.sh"
	streamCalls   = "/run/lab-stream-setup"
)

// streamSetupText has containerd ask through the mirror, which must be there by then.
const streamSetupText = `#!/bin/sh -e
for unit in containerd acr-mirror overlaybd-tcmu overlaybd-snapshotter; do systemctl is-active -q $unit; done
echo "$*" >>` + streamCalls + `
`

// streamFiles are an image's services. The snapshotter is a real one: containerd's, behind
// a socket.
func streamFiles(t *testing.T, l *lab.Lab) map[string]lab.File {
	t.Helper()
	path, err := l.Snapshotter(within(t, 4*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unit := func(service string) lab.File {
		return lab.File{Content: []byte("[Service]\n" + service + "\n[Install]\nWantedBy=multi-user.target\n")}
	}
	const units = "/usr/lib/systemd/system/"
	return map[string]lab.File{
		streamProgram:                           {Content: program, Mode: 0o755},
		streamSetup:                             {Content: []byte(streamSetupText), Mode: 0o755},
		units + "acr-mirror.service":            unit("ExecStart=/bin/sleep infinity"),
		units + "overlaybd-tcmu.service":        unit("ExecStart=/bin/sleep infinity"),
		units + "overlaybd-snapshotter.service": unit("Type=notify\nExecStart=" + streamProgram + " /run/overlaybd-snapshotter/overlaybd.sock " + streamedDir),
	}
}

func streams(c *aksnodeconfigv1.Configuration) { c.EnableArtifactStreaming = true }

// streamed: containerd reaches the snapshotter by its socket, and a pod's files come from
// there.
func (c *cloudNode) streamed(t *testing.T) {
	t.Helper()
	n := c.node
	dump := run(t, n, "containerd", "config", "dump")
	if !containsAll(dump, "[proxy_plugins.overlaybd]", "address = '/run/overlaybd-snapshotter/overlaybd.sock'", "snapshotter = 'overlaybd'", "disable_snapshot_annotations = false") {
		t.Errorf("containerd reads\n%s", dump)
	}
	for _, service := range []string{"acr-mirror", "overlaybd-tcmu", "overlaybd-snapshotter"} {
		started(t, n, "containerd", service, "berth-artifact-streaming", "kubelet")
	}
	if calls := read(t, n, streamCalls); calls != "aks" {
		t.Errorf("%s was called with %q", streamSetup, calls)
	}
	runPod(t, c.lab, "streamed", n.Name)
	if mounts := run(t, n, "grep", "-c", "lowerdir="+streamedDir, "/proc/mounts"); strings.TrimSpace(mounts) != "2" { // the sandbox's and the container's
		t.Errorf("%s pods' files are of the snapshotter", mounts)
	}
}
