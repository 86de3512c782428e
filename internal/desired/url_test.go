package desired

import (
	"strings"
	"testing"
)

const pin = "@sha256:0123456789012345678901234567890123456789012345678901234567890123"

func TestBareURL(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"./dir/file@2":                   "./dir/file@2",
		"/a/b":                           "/a/b",
		"https://h.example/a%20b/c":      "https://h.example/a%20b/c",
		"https://h.example:8443/@s/p":    "https://h.example:8443/@s/p",
		"https://h.example/a?S3CRET":     "https://h.example/a",
		"https://h.example/a#S3CRET?x":   "https://h.example/a",
		"https://u:S3CRET@h.example/a":   "https://h.example/a",
		"https://S3CRET@h.example":       "https://h.example",
		"//u:S3CRET@h.example/a":         "//h.example/a",
		"file:///a/b":                    "file:///a/b",
		"oci://r.example:5000/a:b" + pin: "oci://r.example:5000/a:b" + pin,
		"oci://u:S3CRET@r.example/a:b":   "oci://r.example/a:b",
		// What url.Parse refuses.
		"https://u:S3CRET@h:port/a":           "https://…@h:…/a",
		"https://u:S3/CRET@h/a":               "https://…@h/a",
		"https://u:S3CRET#x@h/a":              "https://…",
		"https://u:S3CRET?x@h/a":              "https://…",
		"oci://u:S3CRET:#x@h/a":               "oci://…",
		"oci://u:S3CRET:/a":                   "oci://u:…/a",
		"https://[fe80::1%25eth0]:2/a":        "https://[fe80::1%25eth0]:2/a",
		"https://u:S3CRET/a":                  "https://u:…/a",
		"https://u:%zz@h/a?S3CRET":            "https://…@h/a",
		"https://h/%zz?S3CRET#S3CRET":         "https://h/%zz",
		"https://h/%zz?a@S3CRET":              "https://…",
		"https://h/%zz?S3CRET" + pin:          "https://…",
		"https://h:1/%zz":                     "https://h:1/%zz",
		"https://[::1]:2/%zz":                 "https://[::1]:2/%zz",
		"oci://u:S3CRET@r:x/a" + pin:          "oci://…@r:…/a" + pin,
		"u:S3CRET@r.example/a:b":              "…@r.example/a:b",
		"Pause:3.10":                          "Pause:3.10",
		"Pause:3.10" + pin:                    "Pause:3.10" + pin,
		"https:u:S3CRET@h/a":                  "…@h/a",
		" https://u:S3CRET@h/a":               "…@h/a",
		"https://u:S3CRET@h/\x00":             "https://…@h/\x00",
		"ht!tp://u:S3CRET@h/a":                "…@h/a",
		"https://u:S3CRET@https://u:S3CRET@h": "https://…@h",
	} {
		if got := BareURL(text); got != want || strings.Contains(got, "S3") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestBareText(t *testing.T) {
	for text, want := range map[string]string{
		`parse "http://u:S3CRET@h:x": invalid port "x"`:              `parse "http://…@h:…": invalid port "x"`,
		`invalid proxy address "u:S3CRET@h:x": no`:                   `invalid proxy address "…@h:…": no`,
		"Get /a/b?sig=S3CRET (twice), https://h/a?S3CRET: it failed": "Get /a/b (twice), https://h/a it failed",
		"dial tcp 10.0.0.1:443: connect: connection refused":         "dial tcp 10.0.0.1:443: connect: connection refused",
		"pull r.example/a:1" + pin + " failed":                       "pull r.example/a:1" + pin + " failed",
	} {
		if got := BareText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzBareURL: a password, a query and a fragment are nowhere to be seen.
func FuzzBareURL(f *testing.F) {
	f.Add("u", "", "", "h.example", "/a", "a=b", "")
	f.Add("u", "12", "/", "h:x", "/%zz", "a@b", "@c")
	f.Add("", "#", "?", "[::1]:5", "", pin, pin)
	f.Fuzz(func(t *testing.T, user, before, after, host, path, query, fragment string) {
		const secret = "S3CRET"
		if strings.ContainsAny(user+before, "/@") {
			return // what follows is a host or a path to every reader
		}
		for _, scheme := range []string{"https", "oci", "ftp"} {
			text := scheme + "://" + user + ":" + before + secret + after + "@" + host + path + "?" + query + secret + "#" + fragment + secret
			shown := []string{BareURL(text)}
			if wordForm().FindString(text) == text {
				shown = append(shown, BareText("x "+text))
			}
			for _, got := range shown {
				if strings.Contains(got, secret) {
					t.Errorf("%q is shown as %q", text, got)
				}
			}
		}
	})
}

func TestRedactURL(t *testing.T) {
	sum := "#sha256=" + strings.Repeat("ab", 32)
	for _, u := range []string{"https://host/k.tgz", "https://host/k.tgz" + sum, "oci://r.example/a:b"} {
		if got := RedactURL(u); got != u {
			t.Errorf("%s became %s", u, got)
		}
	}
	for _, u := range []string{"https://host/k.tgz?sig=hunter2" + sum, "https://user:hunter2@host/k.tgz", "https://host/%zz?hunter2", "https://host/k#hunter2"} {
		got := RedactURL(u)
		if strings.Contains(got, "hunter2") || strings.HasSuffix(u, sum) != strings.HasSuffix(got, sum) {
			t.Errorf("%s became %s", u, got)
		}
		other := RedactURL(strings.Replace(u, "hunter2", "hunter3", 1))
		if same := strings.Contains(u, "#hunter2"); (other == got) != same {
			t.Errorf("%s and another one: %s, %s", u, got, other)
		}
	}
}
