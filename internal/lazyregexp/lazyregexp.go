// Package lazyregexp holds regular expressions that are compiled when they are used
// first: every command pays for what packages do before main.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns the expression; using it panics where it can't be parsed.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
