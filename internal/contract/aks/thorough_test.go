//go:build !race && !sample

package aks

// stride is how many fields apart those are that get another value.
const stride = 1
