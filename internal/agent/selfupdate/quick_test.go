//go:build race || sample

package selfupdate

// step: of the effects that an update is cut at, the quick tests take a sample.
const step = 9
