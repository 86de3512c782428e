package desired

import "errors"

// Image is a container image that the runtime has without a pull: out of a bundle
// on the machine. Once there it is the runtime's: kubelet's garbage collection may
// remove it, and no plan does.
type Image struct {
	Base
	// Reference is complete: "registry.k8s.io/pause:3.10.1".
	Reference string `json:"reference"`
	// Digest is that of its manifest or index: "sha256:…".
	Digest string `json:"digest"`
}

// ImageID names an image.
func ImageID(reference string) ID { return ID("image:" + reference) }

// ID implements Resource.
func (i *Image) ID() ID { return ImageID(i.Reference) }

// Kind implements Resource.
func (i *Image) Kind() string { return "image" }

// Validate implements Resource.
func (i *Image) Validate() error {
	if i.Reference == "" || i.Digest == "" {
		return errors.New("an image needs a reference and a digest")
	}
	return nil
}
