package proxy

import (
	"errors"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// Read is the way out that VariablesFile names; nil where it names none.
func Read(text string) (*desired.Egress, error) {
	said := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, quoted, ok := strings.Cut(line, "=")
		value, whole := unquote(quoted)
		if !ok || !whole {
			return nil, errors.New(`a line is none of NAME="value"`)
		}
		said[strings.ToUpper(name)] = value
	}
	out := &desired.Egress{HTTPProxy: desired.Secret(said["HTTP_PROXY"]), HTTPSProxy: desired.Secret(said["HTTPS_PROXY"])}
	if out.HTTPProxy == "" && out.HTTPSProxy == "" {
		return nil, nil
	}
	if said["NO_PROXY"] != "" {
		out.NoProxy = strings.Split(said["NO_PROXY"], ",")
	}
	return out, nil
}

// unquote reads a value as unitfile.Variable writes it; whole is false for another form.
func unquote(text string) (value string, whole bool) {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return "", false
	}
	text = text[1 : len(text)-1]
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return "", false
		case '\\':
			if i++; i == len(text) {
				return "", false
			}
		}
		out.WriteByte(text[i])
	}
	return out.String(), true
}
