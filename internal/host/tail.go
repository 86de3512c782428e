package host

import "cmp"

// MaxOutput is how much of each output stream of a command is kept where the command does
// not say, in bytes.
const MaxOutput = 64 << 10

// Tail is what is kept of an output stream of the command.
func (c Command) Tail(b []byte) []byte { return b[max(0, len(b)-cmp.Or(c.Keep, MaxOutput)):] }
