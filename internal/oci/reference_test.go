package oci

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
)

var someDigest = digest.FromString("some")

func TestParse(t *testing.T) {
	pinned := "@" + someDigest.String()
	for text, want := range map[string]Reference{
		"oci://reg.example.com/a/b:v1":              {Registry: "reg.example.com", Repository: "a/b", Tag: "v1"},
		"oci://Reg.Example.com:5000/a-b/c__d/e.f":   {Registry: "reg.example.com:5000", Repository: "a-b/c__d/e.f", Tag: "latest"},
		"oci://10.0.0.1/x" + pinned:                 {Registry: "10.0.0.1", Repository: "x", Digest: someDigest},
		"oci://[fd00::1]:443/x:V_1.0-rc.1" + pinned: {Registry: "[fd00::1]:443", Repository: "x", Tag: "V_1.0-rc.1", Digest: someDigest},
	} {
		got, err := Parse(text)
		if diff := gocmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%s prints as %s, which reads as %v (%v)", text, got, again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"https://reg/x":          "it does not begin with oci://",
		"reg/x:1":                "it does not begin with oci://",
		"oci://":                 "no repository after the registry",
		"oci://reg":              "no repository after the registry",
		"oci:///x":               `"" is no host name`,
		"oci://re g/x":           `"re g" is no host name`,
		"oci://reg:/x":           `is no port`,
		"oci://reg:70000/x":      `is no port`,
		"oci://[fd00/x":          `"[fd00" is no IPv6 address`,
		"oci://[fe80::1%eth0]/x": `is no IPv6 address`,
		"oci://reg/Upper:1":      `"Upper" is no repository (parts of lower-case`,
		"oci://reg/a//b":         `"a//b" is no repository`,
		"oci://reg/../b":         `"../b" is no repository`,
		"oci://reg/x:":           `"" is no tag`,
		"oci://reg/x:a:b":        `"a:b" is no tag`,
		"oci://reg/x@sha256:12":  `"oci://reg/x@sha256:12": what follows @ is no digest`,
		"oci://reg/x@sha512:" + strings.Repeat("a", 128): `what follows @ is no digest`,
		"oci://reg/x@md5:12":                             `what follows @ is no digest`,
		"oci://reg/x:1#sha256=1":                         "it has a query or a fragment",
		"oci://reg/x?token=hunter2":                      "it has a query or a fragment",
		"oci://u:hunter2@reg/x":                          "credentials do not belong in it",
		"https://u:hunter2@reg/x?q=":                     "it does not begin with oci://",
		"oci://u:hunter2/x@reg/x":                        "what follows its registry's name is no port",
		"oci://u:hunter2#x@reg/x":                        "it has a query or a fragment",
		"oci://u/a:hunter2@reg/x":                        "what follows @ is no digest",
		"oci://u:a@hunter2@reg/x":                        "credentials do not belong in it",
		"oci://u:hunter2":                                "no repository after the registry",
		"u:hunter2@reg/x":                                "it does not begin with oci://",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error is %v, want %q in it", text, err, want)
		}
	}
}

func TestParseImage(t *testing.T) {
	pin := "@" + someDigest.String()
	for text, want := range map[string]struct{ complete, pulled string }{
		"pause":                      {"docker.io/library/pause:latest", ""},
		"a/b:1":                      {"docker.io/a/b:1", ""},
		"docker.io/pause:1":          {"docker.io/library/pause:1", ""},
		"docker.io/library/a:1.0.0":  {"docker.io/library/a:1.0.0", ""},
		"localhost/x":                {"localhost/x:latest", ""},
		"r.example:5000/a/b":         {"r.example:5000/a/b:latest", ""},
		"R.example/a:1":              {"R.example/a:1", ""},
		"[fd00::1]:5000/a":           {"[fd00::1]:5000/a:latest", ""},
		"r.example/a:1" + pin:        {"r.example/a:1" + pin, "r.example/a" + pin},
		"r.example/a" + pin:          {"r.example/a" + pin, ""},
		"mcr.microsoft.com/o/p:3.6":  {"mcr.microsoft.com/o/p:3.6", ""},
		"registry.test/a_b/c-d.e:_1": {"registry.test/a_b/c-d.e:_1", ""},
	} {
		got, err := ParseImage(text)
		if err != nil || got.Complete() != want.complete || got.Pulled() != cmp.Or(want.pulled, want.complete) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "A", "a b", "r.example/a:", "r.example/../b", "r.example//a", "r.example/a@sha256:00", "r.example:99999/a", "[::::]/a",
		"r.example/a@sha512:" + strings.Repeat("a", 128), strings.TrimPrefix(someDigest.String(), "sha256:"), someDigest.String() + "/", "https://r.example/a",
	} {
		if got, err := ParseImage(text); !errors.As(err, new(*ReferenceError)) {
			t.Errorf("%q is taken for %+v, %v", text, got, err)
		}
	}
}

// FuzzParseImage: what is complete stays as it is, and leads where Parse leads.
func FuzzParseImage(f *testing.F) {
	for _, text := range []string{"pause", "docker.io/x:1", "[::1]:5/x@" + someDigest.String(), "UP/x", "r:0/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseImage(text)
		if err != nil {
			return
		}
		for _, text := range []string{r.Complete(), r.Pulled()} {
			if again, err := ParseImage(text); err != nil || again.Complete() != text {
				t.Errorf("%q: %+v, then %+v, %v", text, r, again, err)
			}
		}
		r.Registry = strings.ToLower(r.Registry)
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%q: %+v, as a URL %+v, %v", text, r, again, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"oci://reg:5000/a/b:v1", "oci://[::1]/x@" + someDigest.String(), "oci://u@h/x", "oci://reg/x?y#z", "://@"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%q prints as %q, which reads as %v (%v)", text, r, again, err)
		}
	})
}
