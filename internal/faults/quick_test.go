//go:build race

package faults_test

const (
	thorough     = false
	stride       = 4
	doubleFaults = 20
)
