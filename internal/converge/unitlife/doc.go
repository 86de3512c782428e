// Package unitlife holds no code, only the lives of units: put on a machine,
// changed, withdrawn. They run on the model of a machine, with a fault at every
// effect, and, built as a program, on a machine with systemd: there with
// BERTH_CONFORMANCE=machine.
package unitlife
