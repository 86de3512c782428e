//go:build !race

package faults_test

// thorough tries every variant of a fault at every effect. Under the race
// detector, which makes a run five times as long, each effect sees one kill and
// one power cut, whose variant follows from its number.
const thorough = true

// stride is how many effects apart the other faults are.
const stride = 1

// doubleFaults is how often a run is killed twice, per scenario: a sample, since
// all pairs would be a hundred thousand.
const doubleFaults = 100
