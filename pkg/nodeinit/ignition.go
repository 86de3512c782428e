package nodeinit

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/ignition"
)

// Ignition is an Ignition 3.3.0 document, for images without cloud-init. It is the document itself, not
// base64. The error is an *InvalidError or a *SizeError.
//
// Ignition itself fetches nothing: where it can't, a machine does not boot, and nobody can look why. The
// unit fetches, in a machine that is up.
func Ignition(d Data) (string, error) {
	text, err := d.prepare()
	if err != nil {
		return "", err
	}
	c := ignition.New()
	for _, f := range d.files() {
		c.Write(f.path, dataURL(f.content))
	}
	c.Start(Unit, text)
	return encode("", c)
}

// dataURL is a text in the shorter of its two forms. A placeholder stays what it is.
func dataURL(text string) string {
	if text == BootstrapTokenPlaceholder || text == MachineNamePlaceholder {
		return "data:," + text
	}
	return shorter("data:,"+percent(text), "data:;base64,"+base64.StdEncoding.EncodeToString([]byte(text)))
}

func shorter(a, b string) string {
	if len(b) < len(a) {
		return b
	}
	return a
}

// percent encodes all that RFC 2397 does not let stand in a data URL.
func percent(text string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		if plain(b) {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

func plain(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-_.!~*'();/?:@&=+$,", b) >= 0
}
