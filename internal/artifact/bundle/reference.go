package bundle

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// The grammar of the distribution project's reference package.
var referenceForm = lazyregexp.New(
	`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?` + // registry
		`(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+` + // repository
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?` + // tag
		`(@sha256:[0-9a-f]{64})?$`)

// CompleteReference is a reference of an image with what its short form leaves
// out: "pause" is docker.io/library/pause:latest.
func CompleteReference(text string) (string, error) {
	out := text
	first, rest, nested := strings.Cut(out, "/")
	switch {
	case !nested:
		out = "docker.io/library/" + out
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		out = "docker.io/" + out
	case first == "docker.io" && !strings.Contains(rest, "/"):
		out = "docker.io/library/" + rest
	}
	if !strings.Contains(out, "@") && !strings.Contains(out[strings.LastIndex(out, "/"):], ":") {
		out += ":latest"
	}
	if len(out) > 512 || !referenceForm().MatchString(out) {
		return "", fmt.Errorf("%q is no reference of an image (registry/repository:tag or @sha256:…)", desired.BareURL(text))
	}
	return out, nil
}
