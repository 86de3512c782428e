//go:build !race && !sample

package faults_test

// thorough tries every variant of a fault at every effect. The others take a sample: one
// variant, which follows from the effect's number. The race detector, which makes a run
// five times as long and has little to find where one worker runs, takes a small one.
const thorough = true

// stride is how many effects, and mutations, apart the faults are.
const stride = 1

// doubleFaults is how often a run is killed twice, per scenario: a sample, since
// all pairs would be a hundred thousand.
const doubleFaults = 100

// schedules is in how many orders several workers take a run's actions, per scenario.
const schedules = 20
