// Package report says what happened: the exit-code registry, provision.json and
// its sentinel, guest-agent events, the log and the timeline. It decides
// nothing; it writes through host.
package report

import "strconv"

// Code is one entry of the exit-code registry. Numbers and names below 244 are
// those that AKS publishes, kept where the meaning is the same; those above are
// berth's own.
type Code struct {
	Number int
	Name   string
	// Meaning is one line without a full stop.
	Meaning string
	// Hint is what an operator can do about it.
	Hint string
}

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
