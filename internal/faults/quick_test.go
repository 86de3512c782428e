//go:build race

package faults_test

const (
	thorough     = false
	stride       = 15
	doubleFaults = 10
)
