// Package aksnodeconfigv1 is the contract between AKS and a node: the types of aksnodeconfig.v1, wire- and
// JSON-compatible with the published one. testdata/contract.txt pins it.
package aksnodeconfigv1

//go:generate go -C ../../../tools run ./protogen
