// Package join is a machine's way out of a cluster as a whole: what ran on it ends in
// order, what berth, kubelet, the container runtime and CNI plugins put on it goes, and
// what was there before is there again. The engine withdraws what documents asked for;
// this package does what no document says.
package join
