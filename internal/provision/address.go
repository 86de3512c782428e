package provision

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// The instance metadata service answers on its link within a few milliseconds
// where there is one; where there is none, little time is lost.
const (
	metadataURL     = "http://169.254.169.254/metadata/instance/network?api-version=2021-02-01"
	metadataConnect = 60 * time.Millisecond
	metadataAnswer  = 400 * time.Millisecond
)

// NodeAddress is the address that the cloud knows of the first interface, IPv4
// and, with a comma between, IPv6; without a cloud the source address of the
// default route; empty if there is none.
func NodeAddress(ctx context.Context) string {
	if a := cloudAddress(ctx, metadataURL); a != "" {
		return a
	}
	return routeSource()
}

type metadataNetwork struct {
	Interface []struct {
		IPv4 metadataAddresses `json:"ipv4"`
		IPv6 metadataAddresses `json:"ipv6"`
	} `json:"interface"`
}

type metadataAddresses struct {
	IPAddress []struct {
		Private string `json:"privateIpAddress"`
	} `json:"ipAddress"`
}

func cloudAddress(ctx context.Context, url string) string {
	ctx, cancel := context.WithTimeout(ctx, metadataAnswer)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	req.Header.Set("Metadata", "true")
	t := &http.Transport{DialContext: (&net.Dialer{Timeout: metadataConnect}).DialContext} // never through a proxy
	defer t.CloseIdleConnections()
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var n metadataNetwork
	if resp.StatusCode != http.StatusOK || json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 1<<20)).Decode(&n) != nil {
		return ""
	}
	return n.first()
}

func (n metadataNetwork) first() string {
	if len(n.Interface) == 0 {
		return ""
	}
	var out []string
	for _, as := range []metadataAddresses{n.Interface[0].IPv4, n.Interface[0].IPv6} {
		if len(as.IPAddress) == 0 {
			continue
		}
		if a, err := netip.ParseAddr(as.IPAddress[0].Private); err == nil {
			out = append(out, a.String())
		}
	}
	return strings.Join(out, ",")
}

// routeSource asks the kernel from where it would send to a far address. A UDP
// "connection" sends nothing.
func routeSource() string {
	c, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		return ""
	}
	defer c.Close()
	a, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok || a.IP.IsLoopback() {
		return ""
	}
	return a.IP.String()
}
