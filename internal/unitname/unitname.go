// Package unitname reads names of systemd units as systemd does: the instance
// stands between the first @ and the last dot, and may have dots and @ itself.
//
// Source: unit_name_is_valid, basic/unit-name.c of systemd.
package unitname

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// The units that more than one package names: those of the published contracts, and
// those of others.
const (
	Controller = "aks-node-controller.service"
	Agent      = "gardener-node-agent.service"
	AgentInit  = "gardener-node-init.service"
	Containerd = "containerd.service"
	Resolved   = "systemd-resolved.service"
)

// IsTemplate says whether a unit is one of which only instances run: "w@.service".
func IsTemplate(name string) bool {
	_, rest, at := strings.Cut(name, "@")
	return at && rest != "" && rest == path.Ext(rest)
}

// Template is that of an instance: "w@.service" of "w@a.service"; "" of others.
func Template(name string) string {
	prefix, _, at := strings.Cut(name, "@")
	if !at || IsTemplate(name) {
		return ""
	}
	return prefix + "@" + path.Ext(name)
}

// Instance is what stands between @ and the type; "" for what is no instance.
func Instance(name string) string {
	_, rest, _ := strings.Cut(name, "@")
	return strings.TrimSuffix(rest, path.Ext(name))
}

// OfPath is a path as the name of a unit without its type: "var-lib-a\x20b" of
// "/var/lib/a b" (unit_name_path_escape).
func OfPath(p string) string {
	p = strings.Trim(path.Clean(p), "/")
	if p == "" {
		return "-"
	}
	var b strings.Builder
	for i := range len(p) {
		switch c := p[i]; {
		case c == '/':
			b.WriteByte('-')
		case c == '.' && i == 0, !plain(c):
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Path is the path of which a unit has its name, with or without its type; false where it
// is the name of none (unit_name_path_unescape).
func Path(name string) (string, bool) {
	name = strings.TrimSuffix(name, path.Ext(name))
	if name == "-" {
		return "/", true
	}
	var b strings.Builder
	b.WriteByte('/')
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == '-':
			b.WriteByte('/')
		case name[i] != '\\':
			b.WriteByte(name[i])
		case i+3 >= len(name) || name[i+1] != 'x':
			return "", false
		default:
			c, err := strconv.ParseUint(name[i+2:i+4], 16, 8)
			if err != nil || c == 0 {
				return "", false
			}
			b.WriteByte(byte(c))
			i += 3
		}
	}
	p := b.String()
	return p, p != "/" && path.Clean(p) == p
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == ':' || c == '_' || c == '.'
}
