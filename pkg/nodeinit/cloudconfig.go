package nodeinit

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// cloudConfig is the part of cloud-init's #cloud-config that is written here. JSON is YAML, and quotes what
// a placeholder is replaced with: a token of digits alone would else be read as a number.
type cloudConfig struct {
	BootCmd    [][]string  `json:"bootcmd"`
	WriteFiles []writeFile `json:"write_files"`
	RunCmd     [][]string  `json:"runcmd"`
}

type writeFile struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Content     string `json:"content"`
}

// CloudConfig is a #cloud-config document, for images with cloud-init. It is the document itself, not base64.
// The error is an *InvalidError or a *SizeError.
func CloudConfig(d Data) (string, error) {
	text, err := d.prepare()
	if err != nil {
		return "", err
	}
	c := cloudConfig{
		// cloud-init sets a file's mode after it has written it; nobody else gets into this directory.
		BootCmd: [][]string{{"mkdir", "-p", "-m", "0700", credentials}},
		RunCmd:  [][]string{{"systemctl", "enable", "--now", "--no-block", Unit}},
	}
	for _, f := range d.files() {
		c.WriteFiles = append(c.WriteFiles, writeFile{f.path, "0600", f.content})
	}
	c.WriteFiles = append(c.WriteFiles, writeFile{unitPath, "0644", text})
	return encode("#cloud-config\n", c)
}

const unitPath = "/etc/systemd/system/" + Unit

// prepare refuses what could not work, and returns the unit.
func (d Data) prepare() (string, error) {
	if errs := d.Validate(); len(errs) > 0 {
		return "", &InvalidError{Errors: errs}
	}
	return d.unitText()
}

// encode leaves <, > and & alone: machine controllers look for the placeholders.
func encode(head string, v any) (string, error) {
	var out bytes.Buffer
	out.WriteString(head)
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("encode init data: %w", err)
	}
	if out.Len() > Limit {
		return "", &SizeError{Size: out.Len(), Limit: Limit}
	}
	return out.String(), nil
}
