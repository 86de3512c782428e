package oci

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%s prints as %s, which reads as %v (%v)", text, got, again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"https://reg/x":              "it does not begin with oci://",
		"reg/x:1":                    "it does not begin with oci://",
		"oci://":                     "no repository after the registry",
		"oci://reg":                  "no repository after the registry",
		"oci:///x":                   `"" is no host name`,
		"oci://re g/x":               `"re g" is no host name`,
		"oci://reg:/x":               `is no port`,
		"oci://reg:70000/x":          `is no port`,
		"oci://[fd00/x":              `"[fd00" is no IPv6 address`,
		"oci://[fe80::1%eth0]/x":     `is no IPv6 address`,
		"oci://reg/Upper:1":          `"Upper" is no repository (parts of lower-case`,
		"oci://reg/a//b":             `"a//b" is no repository`,
		"oci://reg/../b":             `"../b" is no repository`,
		"oci://reg/x:":               `"" is no tag`,
		"oci://reg/x:a:b":            `"a:b" is no tag`,
		"oci://reg/x@sha256:12":      `"oci://reg/x@sha256:12": what follows @ is no digest`,
		"oci://reg/x@md5:12":         `what follows @ is no digest`,
		"oci://reg/x:1#sha256=1":     "it has a query or a fragment",
		"oci://reg/x?token=hunter2":  "it has a query or a fragment",
		"oci://u:hunter2@reg/x":      "credentials do not belong in it",
		"https://u:hunter2@reg/x?q=": "it does not begin with oci://",
		"oci://u:hunter2/x@reg/x":    "what follows its registry's name is no port",
		"oci://u:hunter2#x@reg/x":    "it has a query or a fragment",
		"oci://u/a:hunter2@reg/x":    "what follows @ is no digest",
		"oci://u:a@hunter2@reg/x":    "credentials do not belong in it",
		"oci://u:hunter2":            "no repository after the registry",
		"u:hunter2@reg/x":            "it does not begin with oci://",
	} {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error is %v, want %q in it", text, err, want)
		}
	}
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
		if u := mustURL(t, r.base()+"/manifests/"+r.name()); u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Host == "" {
			t.Errorf("%q leads to %s", text, u)
		}
	})
}
