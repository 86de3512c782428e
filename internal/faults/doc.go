// Package faults holds no code, only the property tests of the engine for whole
// configurations: the AKS contract's full sample on a model of a real image, and
// a fault at every effect of the runs that apply and change it.
package faults
