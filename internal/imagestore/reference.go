package imagestore

import (
	"fmt"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// names are the records under which the CRI plugin keeps one image: it makes the
// same for an image that it pulls.
type names struct {
	// repository is the name without tag and digest.
	repository string
	// tagged is empty where the reference has a digest; then its tag, if any, does
	// not count.
	tagged string
	// promised is the digest in the reference, if there is one.
	promised string
}

// parseReference completes Docker's short forms: "pause" is
// "docker.io/library/pause:latest".
func parseReference(text string) (names, error) {
	ref, err := reference.ParseDockerRef(text)
	if err != nil {
		return names{}, fmt.Errorf("image reference %q: %w", text, err)
	}
	n := names{repository: ref.Name()}
	if d, ok := ref.(reference.Digested); ok {
		n.promised = d.Digest().String()
		return n, checkDigest(n.promised)
	}
	n.tagged = ref.String()
	return n, nil
}

// digested is the name by digest.
func (n names) digested(digest string) string { return n.repository + "@" + digest }

// main is the name that pods use.
func (n names) main() string {
	if n.tagged != "" {
		return n.tagged
	}
	return n.digested(n.promised)
}

// agrees checks an image's digest against the one in its reference.
func (n names) agrees(got string) error {
	if n.promised != "" && n.promised != got {
		return &DigestError{Want: n.promised, Err: fmt.Errorf("the image is %s", got)}
	}
	return nil
}

// checkDigest accepts sha256 alone: what registries and containerd use.
func checkDigest(text string) error {
	d := digest.Digest(text)
	if err := d.Validate(); err != nil || d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%q is no digest of the form sha256:<64 hex digits>", text)
	}
	return nil
}
