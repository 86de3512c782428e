//go:build race || sample

package aks

// stride is how many fields apart those are that get another value: the race detector
// makes a translation eight times as long.
const stride = 13
