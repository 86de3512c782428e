package e2e

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// Identities of a private site, and what its tokens look like.
const (
	puller         = "11111111-0000-0000-0000-000000000001"
	strangeClient  = "11111111-0000-0000-0000-000000000002"
	tokenBeginning = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9" // of every token of the lab
)

// privateSite is a site with a private registry and managed identities. Its names are
// those of a registry that its suffix covers, of one that it does not, and of both's store
// of blobs.
type privateSite struct {
	*metadataService
	suffix, registryName, storeName, otherName string

	held     *serve.Registry
	registry *serve.ACR
	// other is a registry like it, with the same content and another name.
	other *serve.ACR
	ca    string // of the registries' certificate, as the contract has it
	// archive is the file with kubelet and kubectl.
	archive string
	// kubernetes and the others are references; blobs are those of the artifacts.
	kubernetes, containerd, runc, cni string
	version                           string // of containerd
	blobs                             []serve.Pushed
}

func serveSite(t *testing.T, l *lab.Lab) *privateSite {
	t.Helper()
	held, m := serve.NewRegistry(), newMetadata(t, l)
	site := "site-" + strings.ReplaceAll(m.at.String(), ".", "-") // of one lab there are several at once
	s := &privateSite{metadataService: m, held: held, suffix: site + ".azurecr.lab.test", storeName: site + ".blob.lab.test", otherName: site + ".azurecr.other.test"}
	s.registryName = "registry." + s.suffix
	s.registry = serve.NewACR(s.registryName, s.storeName, held, s.metadata)
	s.other = serve.NewACR(s.otherName, s.storeName, held, s.metadata)
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
	a := storedArchives(t, s.lab)
	push := func(repository, file string) serve.Pushed {
		pushed, err := held.PushFile(within(t, time.Minute), repository+":v1", "application/vnd.lab.program", "application/gzip", file)
		if err != nil {
			t.Fatal(err)
		}
		s.blobs = append(s.blobs, pushed)
		return pushed
	}
	s.archive = a.Kubernetes
	at := "oci://" + s.registryName + "/"
	s.kubernetes = at + "tools/kubernetes@" + push("tools/kubernetes", a.Kubernetes).Manifest
	s.cni = at + "tools/cni:v1@" + push("tools/cni", a.CNI).Manifest
	push("tools/containerd", a.Containerd)
	s.containerd = at + "tools/containerd:v1"
	_, s.version, _ = strings.Cut(filepath.Base(a.Containerd), "-")
	s.version, _, _ = strings.Cut(s.version, "-linux")
	image := serve.Image{Files: []serve.Entry{{Name: "usr/local/sbin/runc", Source: filepath.Join(s.lab.RuntimePrograms(), "runc")}, {Name: "etc/motd", Data: []byte("hello\n")}}}
	if _, err := held.Push(within(t, time.Minute), "images/runc:v1", image); err != nil {
		t.Fatal(err)
	}
	s.runc = at + "images/runc:v1"
}

// open serves both registries and the store of blobs on port 443 of the site's address.
func (s *privateSite) open(t *testing.T) {
	t.Helper()
	hosts := map[string]http.Handler{s.registryName: s.registry, s.otherName: s.other, s.storeName: s.registry.Blobs}
	cert, err := serve.Stranger(s.registryName, s.otherName, s.storeName)
	if err != nil {
		t.Fatal(err)
	}
	s.ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}))
	for name := range hosts {
		if err := s.lab.AddName(name, s.at); err != nil {
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
	s.redirect(t, port)
}

// redirect brings what is sent to port 443 of the site to another one: the API
// server listens on 443 of all the lab's addresses.
func (s *privateSite) redirect(t *testing.T, port int) {
	t.Helper()
	rule := func(verb string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return s.lab.Command(ctx, "iptables", "-w", "-t", "nat", verb, "PREROUTING", "-d", s.at.String(), "-p", "tcp", "--dport", "443",
			"-j", "REDIRECT", "--to-ports", strconv.Itoa(port)).Run()
	}
	if err := rule("-A"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, rule("-D")) })
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
	c.CustomCloudConfig = &aksnodeconfigv1.CustomCloudConfig{ContainerRegistryDnsSuffix: s.suffix}
}

// configure makes a node fetch everything from the site's registry.
func (s *privateSite) configure(c *aksnodeconfigv1.Configuration) {
	s.identify(c)
	c.KubeBinaryConfig.CustomKubeBinaryUrl = s.kubernetes
	c.ContainerdConfig = &aksnodeconfigv1.ContainerdConfig{ContainerdPackageUrl: s.containerd, ContainerdVersion: s.version}
	c.RuncConfig = &aksnodeconfigv1.RuncConfig{RuncPackageUrl: s.runc}
	c.NetworkConfig.CniPluginsUrl = s.cni
}
