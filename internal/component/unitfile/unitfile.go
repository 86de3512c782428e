// Package unitfile writes systemd's text formats: unit files, drop-ins and
// environment files, each value quoted as systemd's own reader undoes it
// (systemd.syntax(7), systemd.exec(5), systemd.service(5) "Command lines").
package unitfile

import (
	"io"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/berth-dev/berth/internal/lazyregexp"
)

const header = "# Written by berth. Settings of your own go into a drop-in.\n"

// Setting is one line of a unit file.
type Setting = unit.UnitOption

// In lists settings of one section: pairs of name and value.
func In(section string, pairs ...string) []*Setting {
	var out []*Setting
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, unit.NewUnitOption(section, pairs[i], pairs[i+1]))
	}
	return out
}

// Text is the text of a unit file.
func Text(sections ...[]*Setting) string {
	var all []*Setting
	for _, s := range sections {
		all = append(all, s...)
	}
	b, err := io.ReadAll(unit.Serialize(all))
	if err != nil {
		panic("a reader in memory failed: " + err.Error())
	}
	return header + string(b)
}

// IsOurs says whether Text made a text.
func IsOurs(text string) bool { return strings.HasPrefix(text, header) }

// Environment is the value of an Environment= line that sets one variable.
func Environment(name, value string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, "\n", `\n`).Replace(value)
	return `"` + name + "=" + escaped + `"`
}

// Variable is one line of an environment file.
func Variable(name, value string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(value)
	return name + `="` + escaped + "\"\n"
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_./:=,@%+<>*{}\[\]()~^;|&!?#-]+$`)

// Word is one argument inside a variable that a command line names as $VARIABLE,
// where systemd splits it at white space.
func Word(s string) string {
	if plainWord().MatchString(s) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Words joins arguments for such a variable.
func Words(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = Word(a)
	}
	return strings.Join(out, " ")
}
