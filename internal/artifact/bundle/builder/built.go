package builder

import "fmt"

// Text says what was made.
func (b Built) Text() string {
	signed := "warning: it is not signed"
	if b.KeyID != "" {
		signed = "signed by key " + b.KeyID
	}
	return fmt.Sprintf("%s\n%s\nsha256 of the file: %x", b.Manifest.Summary(), signed, b.SHA256)
}
