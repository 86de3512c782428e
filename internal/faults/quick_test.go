//go:build race

package faults_test

const (
	thorough     = false
	doubleFaults = 30
)
