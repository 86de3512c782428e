package e2e

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"net"
	"net/http"
	"net/netip"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
	"github.com/berth-dev/berth/lab/internal/site"
)

// The names of a private site, and of a registry that is not its own.
const (
	siteSuffix     = "azurecr.lab.test"
	siteRegistry   = "site." + siteSuffix
	siteStore      = "site.blob.lab.test"
	siteAddress    = "198.18.0.10"
	otherRegistry  = "site.azurecr.other.test"
	puller         = "11111111-0000-0000-0000-000000000001"
	strangeClient  = "11111111-0000-0000-0000-000000000002"
	tokenBeginning = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9" // of every token of the lab
)

// privateSite is a place with a private registry and managed identities.
type privateSite struct {
	lab      *lab.Lab
	held     *serve.Registry
	registry *serve.ACR
	// other is a registry like it, with the same content and another name.
	other    *serve.ACR
	metadata *serve.Metadata
	ca       string // of the registries' certificate, as the contract has it
	// archive is the file with kubelet and kubectl.
	archive string
	// kubernetes and the others are references; blobs are those of the artifacts.
	kubernetes, containerd, runc, cni string
	version                           string // of containerd
	blobs                             []serve.Pushed
	// stop ends the metadata service.
	stop func() error
}

func serveSite(t *testing.T, l *lab.Lab) *privateSite {
	t.Helper()
	held := serve.NewRegistry()
	s := &privateSite{lab: l, held: held, metadata: serve.NewMetadata(serve.Instance{})}
	s.registry = serve.NewACR(siteRegistry, siteStore, held, s.metadata)
	s.other = serve.NewACR(otherRegistry, siteStore, held, s.metadata)
	for _, id := range []string{puller, strangeClient} {
		s.metadata.AddIdentity(serve.Identity{ClientID: id, ObjectID: "object-" + id, ResourceID: "/identities/" + id})
	}
	s.registry.Grant(puller)
	s.other.Grant(puller)
	s.fill(t, held)
	s.open(t)
	s.start(t)
	return s
}

// fill pushes what a bare image lacks: archives as artifacts, runc in an image.
func (s *privateSite) fill(t *testing.T, held *serve.Registry) {
	t.Helper()
	dir := t.TempDir()
	p, err := site.Serve(within(t, time.Minute), s.lab, dir) // for the archives that it packs
	if err != nil {
		t.Fatal(err)
	}
	check(t, p.Close())
	push := func(repository, url string) serve.Pushed {
		name, _, _ := strings.Cut(path.Base(url), "#")
		pushed, err := held.PushFile(within(t, time.Minute), repository+":v1", "application/vnd.lab.program", "application/gzip", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		s.blobs = append(s.blobs, pushed)
		return pushed
	}
	name, _, _ := strings.Cut(path.Base(p.Kubernetes), "#")
	s.archive = filepath.Join(dir, name)
	const at = "oci://" + siteRegistry + "/"
	s.kubernetes = at + "tools/kubernetes@" + push("tools/kubernetes", p.Kubernetes).Manifest
	s.cni = at + "tools/cni:v1@" + push("tools/cni", p.CNI).Manifest
	push("tools/containerd", p.Containerd)
	s.containerd = at + "tools/containerd:v1"
	_, s.version, _ = strings.Cut(path.Base(p.Containerd), "-")
	s.version, _, _ = strings.Cut(s.version, "-linux")
	image := serve.Image{Files: []serve.Entry{{Name: "usr/local/sbin/runc", Source: filepath.Join(s.lab.RuntimePrograms(), "runc")}, {Name: "etc/motd", Data: []byte("hello\n")}}}
	if _, err := held.Push(within(t, time.Minute), "images/runc:v1", image); err != nil {
		t.Fatal(err)
	}
	s.runc = at + "images/runc:v1"
}

// open serves both registries and the store of blobs on port 443 of an address of
// their own.
func (s *privateSite) open(t *testing.T) {
	t.Helper()
	hosts := map[string]http.Handler{siteRegistry: s.registry, otherRegistry: s.other, siteStore: s.registry.Blobs}
	cert, err := serve.Stranger(siteRegistry, otherRegistry, siteStore)
	if err != nil {
		t.Fatal(err)
	}
	s.ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}))
	for name := range hosts {
		if err := s.lab.AddName(name, addr(t, siteAddress)); err != nil {
			t.Fatal(err)
		}
	}
	port := listen(t, s.lab, func(l net.Listener) *serve.Server {
		return serve.StartTLS(l, cert, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := hosts[r.Host]; h != nil {
				h.ServeHTTP(w, r)
				return
			}
			http.Error(w, "nobody of that name", http.StatusMisdirectedRequest)
		}))
	})
	s.address(t, siteAddress)
	s.redirect(t, port)
}

// redirect brings what is sent to port 443 of the site to another one: the API
// server listens on 443 of all the lab's addresses.
func (s *privateSite) redirect(t *testing.T, port int) {
	t.Helper()
	rule := func(verb string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return s.lab.Command(ctx, "iptables", "-w", "-t", "nat", verb, "PREROUTING", "-d", siteAddress, "-p", "tcp", "--dport", "443",
			"-j", "REDIRECT", "--to-ports", strconv.Itoa(port)).Run()
	}
	if err := rule("-A"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, rule("-D")) })
}

// start serves the metadata until stop.
func (s *privateSite) start(t *testing.T) {
	t.Helper()
	s.stop = serve.Start(s.listen(t, serve.IMDSAddress), s.metadata).Close
	t.Cleanup(func() { check(t, s.halt()) })
}

func (s *privateSite) halt() error {
	stop := s.stop
	s.stop = func() error { return nil }
	return stop()
}

// listen takes an address for the time of the test and listens there.
func (s *privateSite) listen(t *testing.T, address string) net.Listener {
	t.Helper()
	s.address(t, netip.MustParseAddrPort(address).Addr().String())
	l, err := s.lab.Listen(within(t, 10*time.Second), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// address gives the lab an address for the time of the test.
func (s *privateSite) address(t *testing.T, a string) {
	t.Helper()
	if err := s.lab.AddAddress(within(t, 10*time.Second), addr(t, a)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.lab.Command(ctx, "ip", "addr", "del", a+"/32", "dev", "lab0").Run() // it may be gone
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// identify gives a configuration the site's identity, registries and CA.
func (s *privateSite) identify(c *aksnodeconfigv1.Configuration) {
	c.AuthConfig.AssignedIdentityId = puller
	c.CustomCaCerts = []string{s.ca}
	c.CustomCloudConfig = &aksnodeconfigv1.CustomCloudConfig{ContainerRegistryDnsSuffix: siteSuffix}
}

// configure makes a node fetch everything from the site's registry.
func (s *privateSite) configure(c *aksnodeconfigv1.Configuration) {
	s.identify(c)
	c.KubeBinaryConfig.CustomKubeBinaryUrl = s.kubernetes
	c.ContainerdConfig = &aksnodeconfigv1.ContainerdConfig{ContainerdPackageUrl: s.containerd, ContainerdVersion: s.version}
	c.RuncConfig = &aksnodeconfigv1.RuncConfig{RuncPackageUrl: s.runc}
	c.NetworkConfig.CniPluginsUrl = s.cni
}

// tokens is how often the metadata service gave a token.
func (s *privateSite) tokens() int {
	n, _ := s.metadata.Count("/metadata/identity/oauth2/token")
	return n
}
