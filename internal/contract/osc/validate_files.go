package osc

import (
	"encoding/base64"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/operatingsystemconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/oci"
)

func (v *validation) files() {
	seen := map[string][]located[v1alpha1.File]{}
	for _, f := range v.doc.allFiles() {
		v.file(f)
		for _, other := range seen[f.of.Path] {
			if meet(f.of.HostName, other.of.HostName) {
				v.errs = append(v.errs, field.Duplicate(f.at.Child("path"), f.of.Path))
				break
			}
		}
		seen[f.of.Path] = append(seen[f.of.Path], f)
	}
}

// meet says whether two files can be for one machine.
func meet(a, b *string) bool { return a == nil || b == nil || strings.EqualFold(*a, *b) }

func (v *validation) file(f located[v1alpha1.File]) {
	f.of.Path = v.path(f.at.Child("path"), f.of.Path)
	if m := f.of.Permissions; m != nil && *m > 0o7777 {
		v.refuse(f.at.Child("permissions"), "%d is no mode: 420 is 0644, and 4095 (07777) the most", *m)
	} else if m != nil && *m > 0o777 {
		v.note(f.at.Child("permissions"), "set-id and sticky bits have no effect, as published")
	}
	v.content(f.at.Child("content"), &f.of.Content)
}

// path refuses what is no path of a file, and returns the path otherwise.
func (v *validation) path(at *field.Path, p string) string {
	switch clean := path.Clean(p); {
	case !v.require(at, p):
	case !path.IsAbs(p):
		v.refuse(at, "%q is not absolute", p)
	case strings.ContainsRune(p, 0):
		v.refuse(at, "%q is no path: Linux takes no NUL in one", p)
	case strings.HasSuffix(p, "/"):
		v.refuse(at, "%q is a directory", p)
	case strings.Contains(p+"/", "/../"):
		v.refuse(at, "%q leads upwards", p)
	case tooLong(p):
		v.refuse(at, "%.40q… is longer than Linux takes: 255 bytes a name, 4095 in all", p)
	case ofKernel(clean):
		v.refuse(at, "%q: what is below /proc, /sys and /dev is the kernel's", p)
	case clean != p:
		v.note(at, "it is the file "+clean)
		return clean
	}
	return p
}

func tooLong(p string) bool {
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > 255 {
			return true
		}
	}
	return len(p) > 4095
}

func ofKernel(p string) bool {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// content holds a file's content to the rules of the API's admission.
func (v *validation) content(at *field.Path, c *v1alpha1.FileContent) {
	sources := 0
	for _, there := range []bool{c.Inline != nil, c.SecretRef != nil, c.ImageRef != nil} {
		if there {
			sources++
		}
	}
	if sources != 1 {
		v.refuse(at, "exactly one of inline, secretRef and imageRef must be set, and %d are (the API's admission)", sources)
	}
	if c.Inline != nil {
		v.inline(at.Child("inline"), c.Inline)
	}
	if r := c.SecretRef; r != nil {
		v.require(at.Child("secretRef", "name"), r.Name)
		v.require(at.Child("secretRef", "dataKey"), r.DataKey)
	}
	if c.ImageRef != nil {
		v.imageRef(at.Child("imageRef"), c.ImageRef)
	}
}

func (v *validation) inline(at *field.Path, c *v1alpha1.FileContentInline) {
	if c.Encoding != "" && c.Encoding != v1alpha1.EncodingBase64 {
		v.errs = append(v.errs, field.NotSupported(at.Child("encoding"), c.Encoding, []string{"", v1alpha1.EncodingBase64}))
		return
	}
	if !v.require(at.Child("data"), c.Data) {
		return
	}
	if _, err := inlineData(c); err != nil {
		v.refuse(at.Child("data"), "it is not base64: %v", err)
	}
}

// inlineData is the content as it is on the disk.
func inlineData(c *v1alpha1.FileContentInline) ([]byte, error) {
	if c.Encoding == "" {
		return []byte(c.Data), nil
	}
	return base64.StdEncoding.DecodeString(c.Data)
}

func (v *validation) imageRef(at *field.Path, r *v1alpha1.FileContentImageRef) {
	if v.require(at.Child("image"), r.Image) {
		if _, err := imageName(r.Image); err != nil {
			v.refuse(at.Child("image"), "%v", err)
		}
	}
	in := at.Child("filePathInImage")
	switch {
	case !v.require(in, r.FilePathInImage):
	case strings.HasSuffix(r.FilePathInImage, "/"), path.Clean("/"+r.FilePathInImage) == "/":
		v.refuse(in, "%q is a directory", r.FilePathInImage)
	case strings.ContainsRune(r.FilePathInImage, 0):
		v.refuse(in, "%q is no path: Linux takes no NUL in one", r.FilePathInImage)
	}
}

// imageName is the complete name of an image, as containerd reads a short one.
func imageName(text string) (string, error) {
	ref, err := oci.ParseImage(text)
	if err != nil {
		return "", err
	}
	return ref.Pulled(), nil
}
