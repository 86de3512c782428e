package node

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/lazyregexp"
	"github.com/berth-dev/berth/internal/oci"
)

var (
	versionForm = lazyregexp.New(`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	digestForm  = lazyregexp.New(`^[0-9a-fA-F]{64}$`)
	pinnedForm  = lazyregexp.New(`^sha256=[0-9a-fA-F]{64}$`)
	directForm  = lazyregexp.New(`^[^\s,"]+$`)
)

func (v *validation) components(c *v1alpha1.Components) {
	k := c.Kubernetes
	if v.required(componentsPath.Child("kubernetes", "version"), k.Version) {
		v.component(componentsPath.Child("kubernetes"), v1alpha1.Component(k))
	}
	v.program(componentsPath.Child("containerd"), c.Containerd)
	v.program(componentsPath.Child("runc"), c.Runc)
	v.program(componentsPath.Child("cni"), c.CNI)
	if image := c.SandboxImage; image != "" {
		if _, err := oci.ParseImage(image); err != nil { // containerd
			v.expect(componentsPath.Child("sandboxImage"), image, "expected the name of an image: "+err.Error())
		}
	}
}

// program is one that the machine may have. Without a version nothing would tell
// whether it is the one that is named.
func (v *validation) program(at *field.Path, c v1alpha1.Component) {
	if len(c.URLs) > 0 && c.Version == "" {
		v.errs = append(v.errs, field.Required(at.Child("version"), "that of what urls name"))
	}
	v.component(at, c)
}

// component is read by berth, which fetches it.
func (v *validation) component(at *field.Path, c v1alpha1.Component) {
	if c.Version != "" && !versionForm().MatchString(c.Version) {
		v.expect(at.Child("version"), c.Version, "expected a version, e.g. 1.36.3")
	}
	if c.SHA256 != "" && !digestForm().MatchString(c.SHA256) {
		v.expect(at.Child("sha256"), c.SHA256, "expected 64 hex digits")
	}
	if c.SHA256 != "" && len(c.URLs) == 0 {
		v.refuse(at.Child("sha256"), "it is the digest of what urls name, and there are none")
	}
	for i, text := range c.URLs {
		v.download(at.Child("urls").Index(i), text, c.SHA256 != "")
	}
}

// download: a URL may hold a signature, so that it is not shown.
func (v *validation) download(at *field.Path, text string, digest bool) {
	u, err := url.Parse(text)
	switch {
	case err != nil || !slices.Contains([]string{"https", "http", "oci", "file"}, u.Scheme) || u.Scheme != "file" && u.Hostname() == "":
		v.refuse(at, "expected a URL: https, http, oci or file")
	case u.Fragment != "" && !pinnedForm().MatchString(u.Fragment):
		v.refuse(at, "the fragment of the URL is no digest: expected #sha256= and 64 hex digits")
	case u.Scheme == "http" && u.Fragment == "" && !digest:
		v.refuse(at, "plain http goes only with a digest")
	}
}

func (v *validation) artifacts(a *v1alpha1.Artifacts) {
	for i, m := range a.Mirrors {
		at := artifactsPath.Child("mirrors").Index(i)
		v.web(at.Child("prefix"), m.Prefix, "https", "http")
		v.web(at.Child("url"), m.URL, "https", "http")
	}
	for i, m := range a.RegistryMirrors {
		at := artifactsPath.Child("registryMirrors").Index(i)
		switch { // containerd
		case !v.required(at.Child("registry"), m.Registry):
		case !isRegistry(m.Registry):
			v.expect(at.Child("registry"), m.Registry, "expected the name of a registry, e.g. registry.k8s.io")
		}
		v.web(at.Child("url"), m.URL, "https")
	}
}

// isRegistry says whether images can carry a name as their registry's: host[:port], where an
// IPv6 address is in brackets.
func isRegistry(s string) bool {
	if rest, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok := strings.Cut(rest, "]")
		ip, err := netip.ParseAddr(host)
		return ok && err == nil && ip.Is6() && ip.Zone() == "" && (port == "" || port[0] == ':' && isPort(port[1:]))
	}
	host, port, ok := strings.Cut(s, ":")
	return hostName(host) == "" && (!ok || isPort(port))
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n <= 65535
}

// web is a URL without what a prefix can't have.
func (v *validation) web(at *field.Path, text string, schemes ...string) {
	u, err := url.Parse(text)
	switch {
	case !v.required(at, text):
	case err != nil || !slices.Contains(schemes, u.Scheme) || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		v.refuse(at, "expected a URL (%s) without user, query and fragment", strings.Join(schemes, " or "))
	}
}

// proxy is read by Go's and curl's clients and by apt.
func (v *validation) proxy(p *v1alpha1.Proxy) {
	for name, address := range map[string]v1alpha1.Secret{"http": p.HTTP, "https": p.HTTPS} {
		at := proxyPath.Child(name)
		u, err := url.Parse(string(address))
		switch {
		case address == "":
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/":
			v.refuse(at, "expected the URL of a proxy, e.g. http://proxy.example:3128")
		case u.User != nil && !p.AllowInline:
			v.inline(at, address, false, "a proxy that knows this machine by its address")
		}
	}
	for i, entry := range p.NoProxy {
		if !directForm().MatchString(entry) {
			v.expect(proxyPath.Child("noProxy").Index(i), entry, "expected a name, a domain, an address or a network")
		}
	}
}

func (v *validation) trust(t *v1alpha1.Trust) {
	for i, p := range t.CAFiles {
		v.requiredFile(trustPath.Child("caFiles").Index(i), p)
	}
	for i, text := range t.CAs {
		if v.required(trustPath.Child("cas").Index(i), text) {
			v.certificates(trustPath.Child("cas").Index(i), text)
		}
	}
}

func (v *validation) requiredFile(at *field.Path, p string) {
	if v.required(at, p) {
		v.file(at, p)
	}
}

// file is a path that berth reads; "" is none.
func (v *validation) file(at *field.Path, p string) {
	if p != "" && (!path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0)) {
		v.expect(at, p, "expected an absolute path without . and .. in it")
	}
}

// certificates is PEM that Go and OpenSSL read; "" is none.
func (v *validation) certificates(at *field.Path, text string) {
	if text != "" {
		if want := notCertificates([]byte(text)); want != "" {
			v.refuse(at, "%s", want)
		}
	}
}

// notCertificates says what is wrong with a bundle of CA certificates; "" if nothing
// is.
func notCertificates(text []byte) string {
	rest, n := text, 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return "expected certificates, found " + block.Type
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err.Error()
		}
		n++
	}
	switch {
	case n == 0:
		return "expected PEM with certificates"
	case len(bytes.TrimSpace(rest)) > 0 && bytes.Contains(rest, []byte("-----BEGIN")):
		return "the last PEM block is cut off"
	}
	return ""
}

// hostName is a DNS name or an address.
func hostName(s string) string {
	_, ok := family(s)
	if ok || len(content.IsDNS1123Subdomain(strings.ToLower(s))) == 0 {
		return ""
	}
	return "expected a DNS name or an IP address"
}
