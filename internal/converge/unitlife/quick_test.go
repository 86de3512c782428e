//go:build race || sample

package unitlife_test

// stride is how many effects apart the faults are: the race detector makes a run
// five times as long.
const stride = 7
