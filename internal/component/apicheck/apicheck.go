// Package apicheck proves before anything changes that the API server answers.
package apicheck

import (
	"net"
	"strconv"
	"time"

	"github.com/berth-dev/berth/internal/desired"
)

// Port is where an API server listens unless its name says otherwise.
const Port = 443

// Endpoint splits the name of an API server: a DNS name or an IP address,
// optionally with a port.
func Endpoint(name string) (host string, port int) {
	if h, p, err := net.SplitHostPort(name); err == nil {
		if n, err := strconv.Atoi(p); err == nil {
			return h, n
		}
	}
	if len(name) > 2 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	}
	return name, Port
}

// URL is the address of the API server as kubeconfig files name it.
func URL(name string) string {
	host, port := Endpoint(name)
	return "https://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// Resource is the check of the API server's name, port and certificate.
func Resource(name, ca string, timeout time.Duration) *desired.Check {
	host, port := Endpoint(name)
	return &desired.Check{Name: desired.CheckAPIServer, Host: host, Port: port, CA: ca, Timeout: timeout}
}
