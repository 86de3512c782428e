package host

// MaxOutput is how much of each output stream of a command is kept, in bytes.
const MaxOutput = 64 << 10

// Tail is the last MaxOutput bytes of an output stream.
func Tail(b []byte) []byte {
	if len(b) <= MaxOutput {
		return b
	}
	return b[len(b)-MaxOutput:]
}
