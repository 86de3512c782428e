package memory

import (
	"strings"
)

// settings are what a definition and its drop-ins say: "Section.Key" → values in
// order; an assignment of nothing resets the list (systemd.syntax(7)).
type settings map[string][]string

// merge reads a unit file over what is there.
func (s settings) merge(content string) {
	section := ""
	for _, line := range logicalLines(content) {
		switch {
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		default:
			s.assign(section, line)
		}
	}
}

func (s settings) assign(section, line string) {
	key, val, ok := strings.Cut(line, "=")
	if !ok {
		return
	}
	name := section + "." + strings.TrimSpace(key)
	if val = strings.TrimSpace(val); val == "" {
		delete(s, name)
		return
	}
	s[name] = append(s[name], val)
}

// logicalLines joins continued lines and leaves out comments and blanks.
func logicalLines(content string) []string {
	var out []string
	joined := ""
	for raw := range strings.SplitSeq(content, "\n") {
		line := strings.TrimSpace(raw)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if head, more := strings.CutSuffix(line, `\`); more {
			joined += head + " "
			continue
		}
		out = append(out, joined+line)
		joined = ""
	}
	return out
}

// last is the value of a setting that holds one value.
func (s settings) last(name string) string {
	if v := s[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// names are the units that a list setting names.
func (s settings) names(key string) []string {
	return strings.Fields(strings.Join(s["Unit."+key], " "))
}

func (s settings) bool(name string) bool {
	switch strings.ToLower(s.last(name)) {
	case "1", "yes", "true", "on", "y", "t":
		return true
	}
	return false
}

func (s settings) hasSection(section string) bool {
	for k := range s {
		if strings.HasPrefix(k, section+".") {
			return true
		}
	}
	return false
}

// execLine is one Exec*= setting.
type execLine struct {
	path   string
	args   []string
	ignore bool // "-": a failure does not count
}

func parseExec(line string) execLine {
	var e execLine
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return e
	}
	prefix := strings.TrimLeft(fields[0], "-@:+!|")
	e.ignore = strings.Contains(fields[0][:len(fields[0])-len(prefix)], "-")
	e.path, e.args = prefix, fields[1:]
	return e
}

func (s settings) exec(key string) []execLine {
	var out []execLine
	for _, l := range s["Service."+key] {
		out = append(out, parseExec(l))
	}
	return out
}
