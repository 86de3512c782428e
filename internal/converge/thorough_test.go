//go:build !race && !sample

package converge_test

// stride is how many effects apart the faults are.
const stride = 1
