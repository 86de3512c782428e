package bundle

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/report"
)

// Text is what a bundle says that it holds, for people.
func (b *Bundle) Text() string {
	var text strings.Builder
	m := b.Manifest()
	fmt.Fprintf(&text, "%s\n", m.Summary())
	if id := b.KeyID(); id != "" {
		fmt.Fprintf(&text, "says to be signed by key %s\n", id)
	} else {
		text.WriteString("not signed\n")
	}
	for _, a := range m.Artifacts {
		fmt.Fprintf(&text, "\nartifact %s\n  sha256:%s, %s\n", strings.TrimSpace(a.Name+" "+a.Version), a.SHA256, megabytes(a.Size))
		for _, u := range a.URLs {
			fmt.Fprintf(&text, "  %s\n", u)
		}
	}
	for _, i := range m.Images {
		fmt.Fprintf(&text, "\nimage %s\n  %s\n", i.Reference, i.Digest)
	}
	return text.String()
}

// Signer says what is known of who made a bundle.
func (r Report) Signer() string {
	switch {
	case r.Trusted:
		return "signed by the trusted key " + r.KeyID
	case r.KeyID != "":
		return "warning: it says to be signed by key " + r.KeyID + ", and no key is trusted here: the signature was not verified"
	}
	return "warning: it is not signed"
}

// megabytes is a size for people.
func megabytes(n int64) string {
	if n < 1e5 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// Summary is what a bundle holds, in a few words.
func (m *Manifest) Summary() string {
	return fmt.Sprintf("%s and %s for %s, %s", report.Count(len(m.Artifacts), "artifact"), report.Count(len(m.Images), "image"), m.Platform, megabytes(m.Bytes()))
}
