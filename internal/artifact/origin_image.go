package artifact

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/berth-dev/berth/internal/artifact/remote"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/oci"
)

// HostsDir is where containerd is told which hosts have the images of a registry.
const HostsDir = "/etc/containerd/certs.d"

// pullFiles are the files that say how an image is pulled: those of the state where
// it has them, else the machine's.
type pullFiles struct {
	h     host.FS
	ahead map[string]desired.Content
}

func (p pullFiles) read(name string) ([]byte, error) {
	if c, ok := p.ahead[name]; ok {
		return c.Data(), nil
	}
	return p.h.ReadFile(name)
}

// waysTo are the servers that have an image, in the order of hosts.toml.
func (f *Fetcher) waysTo(h host.FS, ref oci.Reference, a *desired.Artifact) ([]way, error) {
	files := pullFiles{h, a.Ahead}
	hosts, at, err := files.hostsOf(ref.Registry)
	if err != nil {
		return nil, &hostError{fmt.Errorf("read %s: %w", at, err)}
	}
	var out []way
	for i := range hosts {
		client, err := f.hostClient(files, &hosts[i], a.Via)
		if err != nil {
			return nil, &hostError{fmt.Errorf("%s: %w", at, err)}
		}
		out = append(out, way{client, hosts[i].Resolves, hosts[i].Pulls})
	}
	return out, nil
}

// hostsOf finds the hosts of a registry as containerd does: in the directory of its
// name, else in that of all others. at is the file that says so.
func (p pullFiles) hostsOf(name string) (hosts []remote.Host, at string, err error) {
	for _, name := range hostDirs(name) {
		dir := path.Join(HostsDir, name)
		at = path.Join(dir, "hosts.toml")
		text, err := p.read(at)
		if err == nil && len(text) > 0 {
			hosts, err = remote.ParseHosts(text, dir)
			return hosts, at, err
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, at, err
		}
		there, err := p.h.ReadDir(dir)
		if err == nil {
			return []remote.Host{certificatesIn(dir, there)}, dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, dir, err
		}
	}
	return []remote.Host{itself()}, HostsDir, nil
}

// hostDirs are the names that a registry's directory may have.
func hostDirs(name string) []string {
	out := []string{name, "_default"}
	if i := strings.LastIndexByte(name, ':'); i > 0 {
		out = append([]string{name[:i] + "_" + name[i+1:] + "_"}, out...)
	}
	return out
}

func itself() remote.Host { return remote.Host{Resolves: true, Pulls: true} }

// certificatesIn is the registry itself, with what a directory without hosts.toml
// has for it: *.crt are CAs, pairs of *.cert and *.key are for a client.
func certificatesIn(dir string, names []string) remote.Host {
	h := itself()
	for _, name := range names {
		p := path.Join(dir, name)
		switch path.Ext(name) {
		case ".crt":
			h.CAs = append(h.CAs, p)
		case ".cert":
			h.Clients = append(h.Clients, [2]string{p, strings.TrimSuffix(p, ".cert") + ".key"})
		}
	}
	return h
}

// hostClient is the client for one host. Only that of the registry itself is kept
// for others: certificates may change.
func (f *Fetcher) hostClient(files pullFiles, at *remote.Host, via *desired.Egress) (*remote.Client, error) {
	if at.IsRegistry() {
		return f.registry(via)
	}
	base, err := f.clients.by(f.opt.Client, via)
	if err != nil {
		return nil, err
	}
	client, err := tuned(base, files, at)
	if err != nil {
		return nil, err
	}
	c := clientOf(client, via, &f.opt)
	c.Host = at
	return c, nil
}

// tuned is a client like base for one host.
func tuned(base *http.Client, files pullFiles, at *remote.Host) (*http.Client, error) {
	if len(at.CAs)+len(at.Clients) == 0 && !at.SkipVerify {
		return base, nil
	}
	from, ok := base.Transport.(*http.Transport)
	if !ok {
		return nil, errors.New("the HTTP client can't be given certificates")
	}
	t := from.Clone()
	var cas []string
	for _, name := range at.CAs {
		text, err := files.read(name)
		if err != nil {
			return nil, fmt.Errorf("read a CA: %w", err)
		}
		cas = append(cas, string(text))
	}
	if err := trust(t, cas); err != nil {
		return nil, err
	}
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.TLSClientConfig.InsecureSkipVerify = at.SkipVerify // only for what has a digest: see oci
	for _, pair := range at.Clients {
		certificate, err := files.keyPair(pair)
		if err != nil {
			return nil, fmt.Errorf("read a client certificate: %w", err)
		}
		t.TLSClientConfig.Certificates = append(t.TLSClientConfig.Certificates, certificate)
	}
	client := *base
	client.Transport = t
	return &client, nil
}

func (p pullFiles) keyPair(pair [2]string) (tls.Certificate, error) {
	certificate, err := p.read(pair[0])
	if err != nil {
		return tls.Certificate{}, err
	}
	key := certificate
	if pair[1] != "" {
		if key, err = p.read(pair[1]); err != nil {
			return tls.Certificate{}, err
		}
	}
	return tls.X509KeyPair(certificate, key)
}
