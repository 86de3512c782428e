package osc

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
)

// defaultMode is that of files which name none.
const defaultMode = 0o600

// SecretRef names a value of a Secret that a document refers to.
type SecretRef struct{ Name, Key string }

// SecretRefs are the values that a document refers to on the machine of that name,
// each once, in the document's order. They belong into Facts.SecretData.
func (d *Document) SecretRefs(hostname string) []SecretRef {
	var out []SecretRef
	for _, f := range d.allFiles() {
		if r := f.of.Content.SecretRef; r != nil && isFor(f.of, hostname) {
			if ref := (SecretRef{r.Name, r.DataKey}); !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	return out
}

// SecretFiles are the files, one for each value, that hold what SecretRefs names.
func (d *Document) SecretFiles(hostname string) map[SecretRef]string {
	out := map[SecretRef]string{}
	for _, f := range d.allFiles() {
		if r := f.of.Content.SecretRef; r != nil && isFor(f.of, hostname) {
			out[SecretRef{r.Name, r.DataKey}] = f.of.Path
		}
	}
	return out
}

// isFor says whether a machine gets a file.
func isFor(f *v1alpha1.File, hostname string) bool {
	return f.HostName == nil || strings.EqualFold(*f.HostName, hostname)
}

func (t *translation) files() {
	for _, f := range t.doc.allFiles() {
		if !isFor(f.of, t.facts.Hostname) {
			t.unused(f.at, "it is for the machine "+*f.of.HostName)
			continue
		}
		t.file(f)
	}
}

func (t *translation) file(f located[v1alpha1.File]) {
	content := f.at.Child("content")
	switch c := f.of.Content; {
	case c.Inline != nil:
		data, _ := inlineData(c.Inline) // validation has read it
		t.add(f.at, fileOf(f.of, data, false))
	case c.SecretRef != nil:
		data, err := secretValue(t.facts, c.SecretRef)
		if err != nil {
			t.errs = append(t.errs, invalid(content.Child("secretRef"), err.Error()))
			return
		}
		t.add(f.at, fileOf(f.of, data, true))
	case c.ImageRef != nil:
		t.image(content.Child("imageRef"), f.of)
	}
}

// fileOf is a file of the document. What not everybody may read is not shown.
func fileOf(f *v1alpha1.File, data []byte, secret bool) *desired.File {
	mode := modeOf(f)
	out := &desired.File{Path: f.Path, Content: desired.Bytes(data), Mode: mode, AnyMode: f.Permissions == nil && !secret, Life: desired.Managed}
	if secret || mode&0o004 == 0 {
		out.Content = desired.SecretBytes(data)
		out.ModeNamed = mode&0o077 != 0
	}
	return out
}

func modeOf(f *v1alpha1.File) desired.Mode {
	if f.Permissions == nil {
		return defaultMode
	}
	return desired.Mode(*f.Permissions & 0o777)
}

func secretValue(facts component.Facts, r *v1alpha1.FileContentSecretRef) ([]byte, error) {
	values, ok := facts.SecretData[r.Name]
	if !ok {
		return nil, fmt.Errorf("the Secret %s is not at hand: only berth agent reads Secrets of the cluster", r.Name)
	}
	data, ok := values[r.DataKey]
	if !ok {
		return nil, fmt.Errorf("the Secret %s has no %s", r.Name, r.DataKey)
	}
	return data, nil
}

func (t *translation) unused(at *field.Path, reason string) {
	t.state.Unused = append(t.state.Unused, fieldNote(at, reason))
}
