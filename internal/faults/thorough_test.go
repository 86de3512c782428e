//go:build !race

package faults_test

// thorough tries every variant of a fault at every effect. Under the race
// detector, which makes a run ten times as long, each effect sees one variant of
// each kind, in turn.
const thorough = true

// doubleFaults is how often a run is killed twice, per scenario: a sample, since
// all pairs would be a hundred thousand.
const doubleFaults = 150
