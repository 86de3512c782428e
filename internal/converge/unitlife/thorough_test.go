//go:build !race && !sample

package unitlife_test

// stride is how many effects apart the faults are.
const stride = 1
