package bundle

import (
	"fmt"
	"slices"
)

// SpecError is a wish for a bundle that can't be.
type SpecError struct{ Reason string }

// Error says why.
func (e *SpecError) Error() string { return e.Reason }

// merge puts artifacts and images into the manifest: what is asked for twice and
// is the same stands once.
func (m *Manifest) merge(artifacts []Artifact, images []Image) error {
	for _, a := range artifacts {
		if err := m.addArtifact(a); err != nil {
			return err
		}
	}
	for _, i := range images {
		if err := m.addImage(i); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) addArtifact(a Artifact) error {
	same := func(o Artifact) bool { return compareArtifacts(o, a) == 0 }
	at := slices.IndexFunc(m.Artifacts, same)
	if at < 0 {
		at = len(m.Artifacts)
		m.Artifacts = append(m.Artifacts, Artifact{Name: a.Name, Version: a.Version, SHA256: a.SHA256, Size: a.Size, Path: a.Path})
	}
	o := &m.Artifacts[at]
	if o.SHA256 != a.SHA256 {
		return &SpecError{fmt.Sprintf("artifact %s %s is asked for twice with different content; give each a name or version of its own", a.Name, a.Version)}
	}
	o.URLs = append(o.URLs, a.URLs...)
	slices.Sort(o.URLs)
	o.URLs = slices.Compact(o.URLs)
	if o.URLs == nil {
		o.URLs = []string{}
	}
	return nil
}

func (m *Manifest) addImage(i Image) error {
	at := slices.IndexFunc(m.Images, func(o Image) bool { return o.Reference == i.Reference })
	if at < 0 {
		m.Images = append(m.Images, i)
		return nil
	}
	if m.Images[at] != i {
		return &SpecError{fmt.Sprintf("image %s is asked for twice with different content", i.Reference)}
	}
	return nil
}
