package osc

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
)

// parse reads YAML, of which JSON is a part, as the published reader does, but no
// key twice: which of the two is meant nobody can know. That reader goes by way of
// JSON text, which takes as long again as reading; the outcome here is the same.
func parse(data []byte) (any, error) {
	var tree any
	if err := yaml.UnmarshalStrict(data, &tree); err != nil {
		return nil, err
	}
	return asJSON(tree)
}

// asJSON makes of a YAML tree what its JSON text would be read as. Lists are changed
// in place.
func asJSON(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		return validText(v), nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = asJSON(v[i]); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[any]any:
		return object(v)
	}
	number, err := json.Marshal(v)
	return json.Number(number), err
}

func object(m map[any]any) (any, error) {
	out := make(map[string]any, len(m))
	for k, v := range m {
		key, err := keyText(k)
		if err != nil {
			return nil, err
		}
		if out[key], err = asJSON(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keyText is a key as the published reader prints it.
func keyText(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return validText(k), nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case bool:
		return strconv.FormatBool(k), nil
	case float64:
		return floatKey(k), nil
	}
	return "", fmt.Errorf("unsupported map key %T", k)
}

func floatKey(f float64) string {
	switch s := strconv.FormatFloat(f, 'g', -1, 32); s {
	case "+Inf":
		return ".inf"
	case "-Inf":
		return "-.inf"
	case "NaN":
		return ".nan"
	default:
		return s
	}
}

// validText has U+FFFD for each byte that is no UTF-8, as JSON has: YAML's !!binary
// holds any bytes.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
