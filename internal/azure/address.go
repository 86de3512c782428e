package azure

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// The instance metadata service takes a connection on its link within a few
// milliseconds where there is one; where there is none, little time is lost. Less
// is given to it where kubelet has an address that holds: what comes late would
// only say the same. One that has taken the connection has a second to answer, also on a busy
// machine: without its tags the machine would become another node.
const (
	metadataURL          = "http://169.254.169.254/metadata/instance?api-version=2021-02-01"
	metadataConnect      = 60 * time.Millisecond
	metadataConnectAgain = 15 * time.Millisecond
	metadataTurn         = 5 * time.Millisecond
	metadataAnswer       = time.Second
	metadataPause        = 25 * time.Millisecond
	metadataPatience     = 5 * time.Second
)

// Cloud is what the cloud says of the machine.
type Cloud struct {
	// Address is that of the first interface, IPv4 and, with a comma between, IPv6;
	// else one that the machine has; empty if it has none.
	Address string
	// Interfaces are as in component.Facts, with commas between.
	Interfaces string
	// RotationOff, FromPackages, SkipGPU and ManageGPU are as in component.Facts.
	RotationOff, FromPackages, SkipGPU, ManageGPU bool
	// APIServer is the address of a private cluster's API server that a tag names; the
	// zero one where none does.
	APIServer netip.Addr
}

// AskCloud asks once for all that a run wants to know. Where the cloud does not
// tell, kubelet keeps what it has been given: a service that is busy must not
// restart it. An address must still be the machine's; without one the source
// address of the default route is taken.
func AskCloud(ctx context.Context, h host.FS) Cloud {
	return addresses{url: metadataURL, answer: metadataAnswer, here: interfaceAddresses, route: routeSource, dial: (&net.Dialer{}).DialContext}.of(ctx, h)
}

// AskAgain asks for what a document may need and nobody told at once: the network interfaces
// and the address of a private cluster's API server. It has the time of a service that asks
// to be asked again soon. What nobody tells is as in a Cloud without it.
func AskAgain(ctx context.Context) Cloud {
	return addresses{url: metadataURL, answer: metadataPatience, dial: (&net.Dialer{}).DialContext}.again(ctx)
}

func (s addresses) again(ctx context.Context) Cloud {
	d, _ := s.ask(ctx, s.answer)
	return Cloud{Interfaces: d.Network.macs(), APIServer: d.Compute.apiServer()}
}

// addresses are where an address is looked for.
type addresses struct {
	url    string
	answer time.Duration // for the metadata service, all tries together
	here   func() []netip.Addr
	route  func() string
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

func (s addresses) of(ctx context.Context, h host.FS) Cloud {
	here := s.here()
	given := inForce(h, func(a netip.Addr) bool { return slices.Contains(here, a) })
	patience := metadataConnect
	if given != "" {
		patience = metadataConnectAgain
	}
	were := gpuTagsWere(h)
	told := Cloud{RotationOff: was(h, kubelet.RotationOffVariable), FromPackages: was(h, kubelet.FromPackagesVariable), Interfaces: interfacesBefore(h),
		SkipGPU: were.Skipped, ManageGPU: were.Tagged}
	if d, ok := s.ask(ctx, patience); ok {
		told = Cloud{Address: d.Network.first(), RotationOff: d.Compute.on(rotationTag), FromPackages: d.Compute.on(packagesTag), Interfaces: d.Network.macs(),
			SkipGPU: d.Compute.on(skipDriverTag), ManageGPU: d.Compute.on(manageTag), APIServer: d.Compute.apiServer()}
	}
	if told.Address == "" {
		told.Address = given
	}
	if told.Address == "" {
		told.Address = s.route()
	}
	return told
}

var nodeIPFlag = lazyregexp.New(`[ "]--node-ip=([0-9A-Fa-f:.,]+)[ "]`)

// inForce is the address in kubelet's flags, if all of it is still there.
func inForce(h host.FS, has func(netip.Addr) bool) string {
	b, err := h.ReadFile(kubelet.FlagsFile)
	m := nodeIPFlag().FindSubmatch(b)
	if err != nil || m == nil {
		return ""
	}
	for one := range strings.SplitSeq(string(m[1]), ",") {
		if a, err := netip.ParseAddr(one); err != nil || !has(a) {
			return ""
		}
	}
	return string(m[1])
}

func interfaceAddresses() []netip.Addr {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, addr.Unmap())
			}
		}
	}
	return out
}

type metadata struct {
	Compute metadataCompute `json:"compute"`
	Network metadataNetwork `json:"network"`
}

type metadataNetwork struct {
	Interface []struct {
		MAC  string            `json:"macAddress"`
		IPv4 metadataAddresses `json:"ipv4"`
		IPv6 metadataAddresses `json:"ipv6"`
	} `json:"interface"`
}

type metadataAddresses struct {
	IPAddress []struct {
		Private string `json:"privateIpAddress"`
	} `json:"ipAddress"`
}

// ask asks again while the service is busy and there is time; ok is false where
// nobody tells.
func (s addresses) ask(ctx context.Context, patience time.Duration) (d metadata, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, s.answer)
	defer cancel()
	t := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) { // never through a proxy
		ctx, cancel := inTurns(ctx, patience)
		defer cancel()
		return s.dial(ctx, network, address)
	}}
	defer t.CloseIdleConnections()
	for pause := metadataPause; ; pause *= 2 {
		d, ok, busy := askMetadata(ctx, &http.Client{Transport: t}, s.url)
		if !busy {
			return d, ok
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return metadata{}, false
		}
	}
}

// inTurns ends a context after so much time, which it counts in turns that this process had:
// a busy machine may let it run so late that a timeout and a connection that stands for long
// are seen at once.
func inTurns(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		turn := time.NewTimer(metadataTurn)
		defer turn.Stop()
		for range d / metadataTurn {
			select {
			case <-turn.C:
				turn.Reset(metadataTurn)
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, cancel
}

func askMetadata(ctx context.Context, c *http.Client, url string) (d metadata, ok, busy bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return d, false, false
	}
	req.Header.Set("Metadata", "true")
	resp, err := c.Do(req)
	if err != nil {
		return d, false, false
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500 {
		return d, false, true
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 1<<20)).Decode(&d) != nil {
		return metadata{}, false, false
	}
	return d, true, false
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
