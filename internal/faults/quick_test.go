//go:build race || sample

package faults_test

const (
	thorough     = false
	stride       = 15
	doubleFaults = 10
)
