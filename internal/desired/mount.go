package desired

import "errors"

// Mount is a mounted file system. It lasts until the next boot; what mounts it
// then is a unit. A Directory at its target says the mode and owner of what is mounted, too:
// its root has them as soon as it is mounted.
type Mount struct {
	Base
	Source string `json:"source"`
	Target string `json:"target"`
	FSType string `json:"fsType"`
	// Options are those of mount(8), without the generic ones that are defaults.
	Options []string `json:"options,omitempty"`
}

// MountID names a mount by its target.
func MountID(target string) ID { return ID("mount:" + target) }

// ID implements Resource.
func (m *Mount) ID() ID { return MountID(m.Target) }

// Kind implements Resource.
func (m *Mount) Kind() string { return "mount" }

// DirectoryPaths implements Resource.
func (m *Mount) DirectoryPaths() []string { return []string{m.Target} }

// Validate implements Resource.
func (m *Mount) Validate() error {
	if m.Source == "" || m.FSType == "" {
		return errors.New("a mount needs a source and a type")
	}
	return cleanAbs(m.Target)
}
