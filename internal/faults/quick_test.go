//go:build sample && !race

package faults_test

const (
	thorough     = false
	stride       = 15
	doubleFaults = 10
	schedules    = 20
)
