package artifact

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/berth-dev/berth/internal/artifact/remote"
)

// Hint says what to look at; "" where nothing is known that says more than that
// the download failed.
func (e *DownloadError) Hint() string { return hint(e.Err) }

// Hint is as of a download.
func (e *PullError) Hint() string { return hint(e.Err) }

func hint(err error) string {
	for _, f := range []func(error) string{hintProxy, hintRegistry, hintStatus, hintTrust, hintNetwork} {
		if hint := f(err); hint != "" {
			return hint
		}
	}
	return ""
}

func hintProxy(err error) string {
	_, answer := errors.AsType[*proxyError](err)
	op, dial := errors.AsType[*net.OpError](err)
	if answer || dial && op.Op == "proxyconnect" {
		return "the proxy does not let this through: check the contract's proxy, its user and password, and whether the server belongs among those reached without proxy"
	}
	return ""
}

func hintRegistry(err error) string {
	refused, mute := remote.Cause(err)
	switch {
	case mute != nil && mute.Registry == remote.MetadataService, refused != nil && refused.Registry == remote.MetadataService:
		return hintIdentity
	case refused == nil:
		return ""
	case refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden:
		return "the registry does not let this machine's credential pull: give its managed identity the role AcrPull there, or open the registry to anonymous pulls; outside Azure's public clouds, only registries under custom_cloud_config.container_registry_dns_suffix are told who asks"
	case refused.Status == http.StatusNotFound:
		return "the registry holds nothing by that name: check repository and tag or digest, and whether it was pushed there"
	}
	return ""
}

const hintIdentity = "the instance metadata service gives this machine no token: check that the identity of auth_config.assigned_identity_id is assigned to it, and that nothing closes 169.254.169.254"

func hintStatus(err error) string {
	switch status := statusOf(err); {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "the server wants a credential, or the one in the URL has run out: ask for the URL without this machine's network between"
	case status == http.StatusNotFound || status == http.StatusGone:
		return "the server has no such file: check version and architecture in the URL, and whether the mirror was filled"
	case status == http.StatusTooManyRequests:
		return "the server limits requests: bring nodes up in smaller groups, or name a mirror"
	case status >= 500:
		return "the server is in trouble: try again later, or name a mirror"
	case status > 0:
		return "the server answers, but not with the file: look at the URL with curl -v"
	}
	return ""
}

func hintTrust(err error) string {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	if ok && invalid.Reason == x509.Expired {
		return "the server's certificate is not valid at this machine's time, " + time.Now().UTC().Format(time.RFC3339) + ": check the clock"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's certificate is of a CA that this machine does not know: add it to the contract's custom CAs, or find out who stands between"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server shows a certificate for another name: check the URL's host, and the name's DNS record"
	}
	return ""
}

func hintNetwork(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "check that the server's name has a record that this machine's resolvers see, and /etc/resolv.conf"
	}
	if _, ok := errors.AsType[*stallError](err); ok {
		return "the server, or what is between, holds the connection and sends next to nothing: look for a proxy or firewall, or name a mirror; if it is only slow, raise cse_timeout"
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "packets are dropped on the way: check route, firewall and network security rules"
	}
	return ""
}
