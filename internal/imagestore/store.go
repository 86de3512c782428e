package imagestore

import (
	"cmp"
	"time"

	"github.com/berth-dev/berth/internal/oci"
	"github.com/berth-dev/berth/internal/paths"
)

// Store is the images of the machine's containerd that are kubelet's: the zero
// value is ready. It holds no connection between calls and may be used by several
// goroutines: images that share layers then share their uploads.
type Store struct {
	// own are the settings other than the usual ones.
	own   settings
	turns turns
}

// settings say where containerd is and how long it is waited for.
type settings struct {
	socket, namespace string
	// patience bounds how long an import waits for a containerd that does not
	// answer: at the start and whenever it goes away, counted anew when bytes move.
	patience time.Duration
	// answer bounds each call; one that was not answered is made again.
	answer time.Duration
}

// usual has the namespace in which the CRI plugin keeps kubelet's images.
var usual = settings{socket: paths.ContainerdSocket, namespace: "k8s.io", patience: time.Minute, answer: 20 * time.Second}

// glance is how long somebody waits who does not want to wait.
const glance = 3 * time.Second

func (s settings) complete() settings {
	return settings{cmp.Or(s.socket, usual.socket), cmp.Or(s.namespace, usual.namespace),
		cmp.Or(s.patience, usual.patience), cmp.Or(s.answer, usual.answer)}
}

func (s settings) hasty() settings {
	s.patience, s.answer = min(s.patience, glance), min(s.answer, glance)
	return s
}

// Image is an image to have in a Store.
type Image struct {
	// Reference is its name as a pod writes it: "registry/repository:tag", with
	// or without "@sha256:…". Docker's short forms are completed.
	Reference string
	// Digest is of its manifest or index: "sha256:" and 64 hex digits. For Has it
	// may be empty: any will do.
	Digest string
	// Pinned: kubelet's garbage collection leaves it alone.
	Pinned bool
	// Source opens manifests, config and layers. It may be called from several
	// goroutines. A reader that is an io.Seeker is not read twice when an upload
	// continues, one with a method Size is compared with the manifest before.
	Source oci.Source
}
