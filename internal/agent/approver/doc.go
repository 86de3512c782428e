// Package approver approves the certificate requests of node agents, in clusters
// where nobody else does.
package approver
