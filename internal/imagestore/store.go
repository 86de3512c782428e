package imagestore

import (
	"cmp"
	"io"
	"time"
)

// The defaults of a Store.
const (
	DefaultSocket    = "/run/containerd/containerd.sock"
	DefaultNamespace = "k8s.io" // where the CRI plugin keeps kubelet's images
	DefaultPatience  = time.Minute
)

// Store is the images of one containerd. The zero value is kubelet's on this
// machine. It holds no connection between calls and may be used by several
// goroutines: images that share layers then share their uploads.
type Store struct {
	// Socket is the path of containerd's socket; DefaultSocket if empty.
	Socket string
	// Namespace is containerd's; DefaultNamespace if empty.
	Namespace string
	// Patience bounds how long Import and Remove wait for a containerd that does
	// not answer: at the start and whenever it goes away, counted anew when bytes
	// move. DefaultPatience if zero. The deadline of a call's context holds beside
	// it.
	Patience time.Duration

	turns turns
}

// Image is an image to have in a Store.
type Image struct {
	// Reference is its name as a pod writes it: "registry/repository:tag", with
	// or without "@sha256:…". Docker's short forms are completed.
	Reference string
	// Digest is of its manifest or index: "sha256:" and 64 hex digits. For Has it
	// may be empty: any will do.
	Digest string
	// Pinned keeps kubelet's garbage collection from removing it.
	Pinned bool
	// Blob opens a manifest, config or layer by its digest and says how many bytes
	// it has. It may be called from several goroutines. A reader that is an
	// io.Seeker is not read twice when an upload continues.
	Blob func(digest string) (io.ReadCloser, int64, error)
}

func (s *Store) socket() string    { return cmp.Or(s.Socket, DefaultSocket) }
func (s *Store) namespace() string { return cmp.Or(s.Namespace, DefaultNamespace) }
func (s *Store) patience() time.Duration {
	return cmp.Or(s.Patience, DefaultPatience)
}
