// Package identity says who the machine is to its cluster: it obtains kubelet's
// client certificate with a bootstrap token before kubelet runs, checks the one
// that is there, and makes the self-signed pair with which kubelet serves.
//
// A certificate that exists before kubelet starts spares kubelet its bootstrap,
// in which it may keep an anonymous connection for a second and more.
package identity
