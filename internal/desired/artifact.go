package desired

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ArtifactFile is one file out of an artifact.
type ArtifactFile struct {
	// Member is the path inside the archive; empty when the artifact is the
	// file itself.
	Member string `json:"member,omitempty"`
	Path   string `json:"path"`
	Mode   Mode   `json:"mode"`
	// Field is where a document names the file, where each has a field of its own.
	Field string `json:"-"`
}

// Artifact is a set of files that come out of one download. It is in place when
// every file exists and, where Version is set, the first file (the Probe) is of
// that version, where Image is set, they are out of it; then nothing is fetched.
type Artifact struct {
	Base
	Name string `json:"name"`
	// URLs are tried in order; a fragment "#sha256=…" carries the digest. None:
	// the files must be in the image, and their absence is an error.
	URLs []string `json:"urls,omitempty"`
	// Image, instead of URLs, is the complete name of a container image that holds
	// the files: "registry.example/kubernetes:v1.36.3". They are in place as long as
	// they are what came out of an image of that name. It is pulled as containerd
	// would: from the hosts of /etc/containerd/certs.d.
	Image string `json:"image,omitempty"`
	// Ahead is what files of the state will hold, by path, that say how the image is
	// pulled: they may not be there yet.
	Ahead map[string]Content `json:"ahead,omitempty"`
	// SHA256 is the digest in hex where the contract gives it another way.
	SHA256 string `json:"sha256,omitempty"`
	// Version is what the first file must say of itself: "1.36.3", without v.
	Version string         `json:"version,omitempty"`
	Files   []ArtifactFile `json:"files"`
	// Via is the way to the URLs; nil is the machine's own.
	Via *Egress `json:"via,omitempty"`
}

// Addresses are the URLs, or that of the image.
func (a *Artifact) Addresses() []string {
	if a.Image != "" {
		return []string{"oci://" + a.Image}
	}
	return a.URLs
}

// MarshalJSON shows the URLs without what may be secret in them.
func (a *Artifact) MarshalJSON() ([]byte, error) {
	type plain Artifact
	shown := plain(*a)
	shown.URLs = nil
	for _, u := range a.URLs {
		shown.URLs = append(shown.URLs, RedactURL(u))
	}
	return json.Marshal(&shown)
}

// ArtifactID names an artifact.
func ArtifactID(name string) ID { return ID("artifact:" + name) }

// ID implements Resource.
func (a *Artifact) ID() ID { return ArtifactID(a.Name) }

// Kind implements Resource.
func (a *Artifact) Kind() string { return "artifact" }

// FilePaths implements Resource.
func (a *Artifact) FilePaths() []string {
	var out []string
	for _, f := range a.Files {
		out = append(out, f.Path)
	}
	return out
}

// Validate implements Resource.
func (a *Artifact) Validate() error {
	if a.Name == "" || len(a.Files) == 0 {
		return errors.New("an artifact needs a name and files")
	}
	if a.Image != "" && len(a.URLs) > 0 {
		return errors.New("an artifact is either out of an image or behind URLs")
	}
	for _, f := range a.Files {
		if err := cleanAbs(f.Path); err != nil {
			return fmt.Errorf("file: %w", err)
		}
		if a.Image != "" && f.Member == "" {
			return fmt.Errorf("file %s: nothing says where in the image it is", f.Path)
		}
	}
	return nil
}
