//go:build !race && !sample

package selfupdate

// step: an update is cut at each of its effects.
const step = 1
