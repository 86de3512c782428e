package decode

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/oci"
)

const digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestArtifactURL(t *testing.T) {
	tests := []struct{ text, want string }{
		{"https://files.example/k.tar.gz", "https://files.example/k.tar.gz"},
		{"http://files.example/k.tar.gz#sha256=" + digits, "http://files.example/k.tar.gz#sha256=" + digits},
		{"file:///srv/k.tar.gz", "file:///srv/k.tar.gz"},
		{"oci://registry.example/oss/kubernetes:v1", "oci://registry.example/oss/kubernetes:v1"},
		{"registry.example/oss/kubernetes:v1", "oci://registry.example/oss/kubernetes:v1"},
		{"registry.example:5000/kubernetes", "oci://registry.example:5000/kubernetes"},
		{"localhost/kubernetes", "oci://localhost/kubernetes"},
		{"oci://registry/kubernetes", "oci://registry/kubernetes"},
		{"10.0.0.1:5000/a/b_c.d--e:V1_x.y", "oci://10.0.0.1:5000/a/b_c.d--e:V1_x.y"},
		{"[fd00::1]:5000/a", "oci://[fd00::1]:5000/a"},
		{"registry.example/a@sha256:" + digits, "oci://registry.example/a@sha256:" + digits},
		{"registry.example/a:" + strings.Repeat("v", 128), "oci://registry.example/a:" + strings.Repeat("v", 128)},
		{"registry.example/a:v1@sha256:" + digits + "#sha256=" + digits, "oci://registry.example/a:v1@sha256:" + digits + "#sha256=" + digits},
	}
	for _, test := range tests {
		got, ok := ArtifactURL(test.text)
		if !ok || got != test.want {
			t.Errorf("%s: %q, %v", test.text, got, ok)
		}
		if ref, ok := strings.CutPrefix(got, "oci://"); ok {
			plain, _, _ := strings.Cut(ref, "#")
			if _, err := oci.Parse("oci://" + plain); err != nil {
				t.Errorf("%s: accepted, and then: %v", test.text, err)
			}
		}
	}
}

func TestNoArtifactURL(t *testing.T) {
	for _, text := range []string{
		"ftp://files.example/x", "file://host/x", "file:x", "file:///a/../b", "file:///a?b", "file:///a%00b",
		"kubernetes", "kubernetes/v1", "https//files.example/x", "https:/files.example/x", "./registry.example/x",
		"registry.example/", "registry.example/../x", "registry.example/A", "registry.example/a b", "registry.example/a:",
		"registry.example:0/a", "registry.example:70000/a", "registry.example/a@sha256:1", "registry.example/a?b=c",
		"oci://registry.example", "OCI://registry.example/a", "oci://u:p@registry.example/a", "-a.example/b",
		"registry.example/a:" + strings.Repeat("v", 129), "registry.example/a@sha256:" + digits + "0", "oci://registry.example/a#sha256=" + digits + "0",
		"registry.example/a:v1@sha256:" + digits[1:] + "#sha256=" + digits, "oci://registry.example/a:v1@sha256:" + digits + "#sha256=" + digits[1:],
		"[fd00::1%eth0]/a", "https://files.example/a\nb", "registry.example/a#sha256=1",
	} {
		if got, ok := ArtifactURL(text); ok {
			t.Errorf("%q: accepted as %s", text, got)
		}
	}
}
