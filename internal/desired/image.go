package desired

import "errors"

// Image is a container image that the runtime has before a pod asks for it: out
// of a bundle on the machine, or from a registry. Once there it is the runtime's:
// kubelet's garbage collection may remove it unless it is pinned, and no plan
// does.
type Image struct {
	Base
	// Reference is complete: "registry.k8s.io/pause:3.10.1".
	Reference string `json:"reference"`
	// Digest is that of its manifest or index: "sha256:…". "" takes what Source
	// names, and is content with what the runtime has under the reference.
	Digest string `json:"digest,omitempty"`
	// Source is where it comes from, which need not be the registry of its name:
	// "oci://registry/repository:tag". "" is a bundle on the machine.
	Source string `json:"source,omitempty"`
	// Pinned keeps it from kubelet's garbage collection.
	Pinned bool `json:"pinned,omitempty"`
	// Optional: the machine does without it where it does not come within 10 seconds.
	Optional bool `json:"optional,omitempty"`
	// Via is how its source is reached; nil is as this machine reaches everything.
	Via *Egress `json:"via,omitempty"`
}

// ImageID names an image.
func ImageID(reference string) ID { return ID("image:" + reference) }

// ID implements Resource.
func (i *Image) ID() ID { return ImageID(i.Reference) }

// Kind implements Resource.
func (i *Image) Kind() string { return "image" }

// Validate implements Resource.
func (i *Image) Validate() error {
	if i.Reference == "" || i.Digest == "" && i.Source == "" {
		return errors.New("an image needs a reference, and a digest or a source")
	}
	return nil
}
