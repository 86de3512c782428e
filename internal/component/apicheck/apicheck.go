// Package apicheck proves before anything changes that the machine reaches what it
// needs: a server outside, and the API server.
package apicheck

import (
	"net"
	"strconv"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// port is where an API server listens: its name in a contract has none.
const port = 443

// URL is the address of the API server, a DNS name or an IP address, as
// kubeconfig files name it.
func URL(name string) string {
	return "https://" + net.JoinHostPort(name, strconv.Itoa(port))
}

// Resource is the check of the API server's name, port and certificate.
func Resource(name, ca string, timeout time.Duration) *desired.Check {
	return At(name, port, ca, timeout)
}

// At is that check for an API server that listens at another port.
func At(name string, port int, ca string, timeout time.Duration) *desired.Check {
	return &desired.Check{Name: desired.CheckAPIServer, Host: name, Port: port, CA: ca, Timeout: timeout}
}
