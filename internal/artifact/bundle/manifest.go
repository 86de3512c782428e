package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// FormatVersion is the version of the format that this package writes and the
// only one that it reads.
const FormatVersion = 1

// Names of the members before the blobs, in their order.
const (
	ManifestName  = "berth-bundle.json"
	SignatureName = "berth-bundle.sig"
	layoutName    = "oci-layout"
	indexName     = "index.json"
	blobDir       = "blobs/sha256/"
)

// Bounds of what is believed of a file that nobody vouched for yet.
const (
	maxManifest  = 8 << 20
	maxSignature = 4 << 10
	maxBlobs     = 1 << 16
	maxBlobSize  = 1 << 40
)

// Manifest says what a bundle holds. Lists are sorted and have no duplicates.
type Manifest struct {
	Version int `json:"version"`
	// Platform is what all of it is for: "linux/amd64".
	Platform  string     `json:"platform"`
	Artifacts []Artifact `json:"artifacts"`
	Images    []Image    `json:"images"`
	Blobs     []Blob     `json:"blobs"`
}

// Artifact is a file of the bundle that stands for a download.
type Artifact struct {
	Name string `json:"name"`
	// Version is as in "1.36.3", without v; "" where nobody said.
	Version string `json:"version,omitempty"`
	// URLs are those it stands for, without user, query and fragment.
	URLs []string `json:"urls"`
	// SHA256 is in hex, Size in bytes; Path is the member's name.
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Path   string `json:"path"`
}

// Image is a container image: the reference and what it leads to.
type Image struct {
	// Reference is complete: "registry.k8s.io/pause:3.10.1".
	Reference string `json:"reference"`
	// Digest ("sha256:…"), Size and MediaType are those of the manifest, or of the
	// index where the reference leads to one. Of an index, the bundle holds only
	// what is for its platform.
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"mediaType"`
}

// Blob is one member below blobs/sha256.
type Blob struct {
	// Digest is "sha256:" and 64 hex digits, Size is in bytes.
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// Bytes is the size of all blobs.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, b := range m.Blobs {
		n += b.Size
	}
	return n
}

// encode is the only spelling of a manifest.
func (m *Manifest) encode() ([]byte, error) { return encodeJSON(m) }

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// decodeManifest reads a manifest and refuses what encode would not have
// written: two readers must not see two things in it.
func decodeManifest(raw []byte) (*Manifest, error) {
	var version struct{ Version int }
	if err := json.Unmarshal(raw, &version); err != nil {
		return nil, &NotBundleError{Reason: fmt.Sprintf("%s is not JSON: %v", ManifestName, err)}
	}
	if version.Version != FormatVersion {
		return nil, &VersionError{version.Version}
	}
	m := &Manifest{}
	err := json.Unmarshal(raw, m)
	if err == nil {
		err = m.validate()
	}
	if err != nil {
		return nil, &DamagedError{Member: ManifestName, Reason: err.Error()}
	}
	if again, err := m.encode(); err != nil || !bytes.Equal(again, raw) {
		return nil, &DamagedError{Member: ManifestName, Reason: "it is not spelled as berth writes it"}
	}
	return m, nil
}

// sort brings the lists into their order.
func (m *Manifest) sort() {
	slices.SortFunc(m.Artifacts, compareArtifacts)
	slices.SortFunc(m.Images, compareImages)
	slices.SortFunc(m.Blobs, compareBlobs)
}

func compareArtifacts(a, b Artifact) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
}

func compareImages(a, b Image) int { return cmp.Compare(a.Reference, b.Reference) }

func compareBlobs(a, b Blob) int { return cmp.Compare(a.Digest, b.Digest) }

// memberName is the name of the member that holds a digest.
func memberName(digest string) string { return blobDir + strings.TrimPrefix(digest, "sha256:") }
