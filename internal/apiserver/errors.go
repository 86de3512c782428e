package apiserver

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/exitcode"
)

// Layer is the one at which an exchange with an API server ended.
type Layer string

// The layers, in the order in which an exchange passes them.
const (
	LayerDNS  Layer = "dns"
	LayerTCP  Layer = "tcp"
	LayerTLS  Layer = "tls"
	LayerHTTP Layer = "http"
)

var layerText = map[Layer]string{
	LayerDNS:  "resolve its name",
	LayerTCP:  "connect",
	LayerTLS:  "verify its certificate",
	LayerHTTP: "get an answer",
}

// Error is an exchange with an API server that failed.
type Error struct {
	Layer Layer
	// Host is the server as it was asked for: name or address, with port.
	Host string
	// Cause is the last try's error.
	Cause error
	// Attempts and Elapsed say how long it was tried; one try if zero.
	Attempts int
	Elapsed  time.Duration
	// Resolvers are the name servers that were asked, host:port each.
	Resolvers []string
	// Permanent: no further try would have changed it.
	Permanent bool
}

// Error says what could not be done, why, and how often it was tried.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "API server %s: %s: %v", e.Host, layerText[e.Layer], e.Cause)
	if e.Layer == LayerDNS && len(e.Resolvers) > 0 {
		fmt.Fprintf(&b, " (asked %s)", strings.Join(e.Resolvers, ", "))
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts in %s)", e.Attempts, e.Elapsed.Round(10*time.Millisecond))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Hint says what to look at.
func (e *Error) Hint() string {
	switch e.Layer {
	case LayerDNS:
		return "check that " + e.Host + " has a record that this machine's resolvers see, and /etc/resolv.conf"
	case LayerTCP:
		return "check route, firewall and network security rules from this machine to " + e.Host + between(e.Host)
	case LayerTLS:
		return "check that the contract's CA is this cluster's and that this machine's clock is right"
	case LayerHTTP:
		return "the connection is there: look at the API server itself"
	}
	return ""
}

// between names the proxy of the environment that stands before a server; who set it may
// have left the server out of no_proxy.
func between(server string) string {
	proxy, err := httpproxy.FromEnvironment().ProxyFunc()(&url.URL{Scheme: "https", Host: server})
	if err != nil || proxy == nil {
		return ""
	}
	return ", and the proxy " + proxy.Host + " between them: no_proxy of the environment does not leave the server out"
}

// azureDNS is the name server of Azure's virtual networks.
const azureDNS = "168.63.129.16"

// ExitCode is the published code for the layer at which it ended.
func (e *Error) ExitCode() int {
	switch {
	case e.Layer == LayerDNS && slices.ContainsFunc(e.Resolvers, func(r string) bool { return r == azureDNS || strings.HasPrefix(r, azureDNS+":") }):
		return exitcode.APILookupAzure
	case e.Layer == LayerDNS:
		return exitcode.APILookup
	case e.Layer == LayerTLS:
		return exitcode.Untrusted
	case e.Layer == LayerHTTP && (apierrors.IsUnauthorized(e.Cause) || apierrors.IsForbidden(e.Cause)):
		return exitcode.Credential
	}
	return exitcode.APIConnect
}

// LayerOf returns the layer that an error names, or "" if it names none.
func LayerOf(err error) Layer {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Layer
	}
	return ""
}

// Unknown says whether the server does not know who asks. A client whose certificate is
// of none of the CAs that the server names shows none, and is nobody to it: that is
// forbidden, and not unauthorized, where the server answers nobodies at all.
func Unknown(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), `"system:anonymous"`)
}
