package unitfile

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

// Command is the command line of a service by its definition and its drop-ins, in
// systemd's order; nil if it has none. read returns an environment file, nil where there is
// none. Of specifiers only %% is known. Sources: systemd.service(5) "Command lines",
// systemd.exec(5) "Environment".
func Command(texts []string, read func(path string) ([]byte, error)) ([]string, error) {
	var exec string
	var environment, files []string
	for _, text := range texts {
		all, err := unit.DeserializeOptions(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("read a definition: %w", err)
		}
		for _, o := range all {
			value := strings.ReplaceAll(o.Value, "\\\n", " ")
			switch o.Section + "." + o.Name {
			case "Service.ExecStart":
				exec = value
			case "Service.Environment":
				environment = listed(environment, value)
			case "Service.EnvironmentFile":
				files = listed(files, value)
			}
		}
	}
	env := map[string]string{}
	for _, line := range environment {
		for _, one := range Split(line) {
			name, value, _ := strings.Cut(one, "=")
			env[name] = strings.ReplaceAll(value, "%%", "%")
		}
	}
	for _, f := range files {
		text, err := read(path.Clean(strings.TrimPrefix(f, "-")))
		if err != nil {
			return nil, err
		}
		maps.Copy(env, Variables(string(text)))
	}
	return expand(exec, env), nil
}

// listed adds a value to a setting that is a list; an empty one begins it anew.
func listed(list []string, value string) []string {
	if value == "" {
		return nil
	}
	return append(list, value)
}

var (
	wholeVariable = lazyregexp.New(`^\$[A-Za-z_][A-Za-z0-9_]*$`)
	anyVariable   = lazyregexp.New(`\$\$|\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
)

// expand splits a command line and puts in its variables: $NAME alone becomes words,
// ${NAME} text.
func expand(line string, env map[string]string) []string {
	words := Split(line)
	if len(words) == 0 {
		return nil
	}
	program := strings.TrimLeft(words[0], "@-:+!|")
	how := strings.TrimSuffix(words[0], program)
	out, rest := []string{program}, words[1:]
	if strings.Contains(how, "@") && len(rest) > 0 {
		rest = rest[1:] // the name under which it runs
	}
	for _, w := range rest {
		w = strings.ReplaceAll(w, "%%", "%")
		switch {
		case strings.Contains(how, ":"):
			out = append(out, w)
		case wholeVariable().MatchString(w):
			out = append(out, Split(env[w[1:]])...)
		default:
			out = append(out, anyVariable().ReplaceAllStringFunc(w, func(found string) string {
				if found == "$$" {
					return "$"
				}
				return env[found[2:len(found)-1]]
			}))
		}
	}
	return out
}

const (
	space   = " \t\r\n"
	escapes = "abfnrtv\\\"'s"
	escaped = "\a\b\f\n\r\t\v\\\"' "
)

// Split reads words as systemd does: quotes may stand anywhere in a word, and a backslash
// escapes, inside and outside of them (systemd.syntax(7) "Quoting"). Escapes by number are
// left as they stand.
func Split(text string) []string {
	var out []string
	var word strings.Builder
	var quote byte
	begun := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			if at := strings.IndexByte(escapes, text[i]); at >= 0 {
				word.WriteByte(escaped[at])
			} else {
				word.WriteString(text[i-1 : i+1])
			}
			begun = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && strings.IndexByte(space, c) >= 0:
			if begun {
				out = append(out, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}

// Variables reads an environment file: a line is a name and a value, whole or in part in
// quotes, which may go over lines (systemd.exec(5) "EnvironmentFile=").
func Variables(text string) map[string]string {
	out := map[string]string{}
	for text != "" {
		text = strings.TrimLeft(text, space)
		if strings.HasPrefix(text, "#") || strings.HasPrefix(text, ";") {
			_, text, _ = strings.Cut(text, "\n")
			continue
		}
		at := strings.IndexAny(text, "=\n")
		if at < 0 {
			break
		}
		name, sign := strings.TrimSpace(text[:at]), text[at]
		text = text[at+1:]
		if sign == '\n' {
			continue
		}
		var value string
		value, text = oneValue(text)
		if name != "" {
			out[name] = value
		}
	}
	return out
}

// oneValue reads one value, up to the end of its line, and returns what follows. A quote
// counts at its beginning and after another one.
func oneValue(text string) (value, rest string) {
	var out strings.Builder
	kept := 0 // white space before this stays
	var quote byte
	before := true
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			if quote == '"' && strings.IndexByte("\"\\$`\n", text[i]) < 0 {
				out.WriteByte(c)
			}
			if text[i] != '\n' {
				out.WriteByte(text[i])
			}
			kept, before = out.Len(), quote != 0
		case quote != 0 && c == quote:
			quote, kept, before = 0, out.Len(), true
		case quote == 0 && c == '\n':
			return trimmed(out.String(), kept), text[i+1:]
		case quote == 0 && before && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && strings.IndexByte(space, c) >= 0:
			if !before {
				out.WriteByte(c)
			}
		default:
			out.WriteByte(c)
			kept, before = out.Len(), quote != 0
		}
	}
	return trimmed(out.String(), kept), ""
}

func trimmed(text string, kept int) string {
	return text[:kept] + strings.TrimRight(text[kept:], space)
}
