//go:build race

package faults_test

const (
	thorough     = false
	stride       = 60
	doubleFaults = 2
	schedules    = 6
)
