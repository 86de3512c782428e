// Package exitcode is what a program's end means: number, name, meaning and hint
// of each code, and how an error carries the one that it means. It imports no
// other room: whoever knows what an error means gives it its code.
package exitcode

import "strconv"

// Code is one entry of the registry. Numbers and names below 244 are those that
// AKS publishes, kept where the meaning is the same; those above are berth's own.
type Code struct {
	Number int
	Name   string
	// Meaning is one line without a full stop.
	Meaning string
	// Hint is what an operator can do about it.
	Hint string
}

// LogPath is the log of provisioning, to which hints lead.
const LogPath = "/var/log/azure/aks-node-controller.log"

// Registry lists every code that provisioning may end with, by number.
func Registry() []Code { return append([]Code(nil), registry...) }

// ByNumber returns the entry of a number. An unregistered number gets an entry
// that says so, so that every code has a name.
func ByNumber(n int) Code {
	for _, c := range registry {
		if c.Number == n {
			return c
		}
	}
	return Code{
		Number:  n,
		Name:    "ERR_" + strconv.Itoa(n),
		Meaning: "a code that is not in the registry",
		Hint:    "Read the log at " + LogPath + ".",
	}
}
