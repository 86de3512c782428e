package node

import (
	"net/url"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

var (
	hashForm     = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
	tokenForm    = lazyregexp.New(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	variableForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	guidForm     = lazyregexp.New(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	clusterForm  = lazyregexp.New(`^(?i)/subscriptions/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/resourceGroups/[\w().-]{1,90}/providers/Microsoft\.ContainerService/managedClusters/[\w-]{1,63}$`)
	locationForm = lazyregexp.New(`^[A-Za-z0-9 ]+$`)
)

func (v *validation) cluster(c *v1alpha1.Cluster) {
	if asksAzure(v.config) {
		if c.CAFile != "" || c.CA != "" || c.CACertHash != "" {
			v.refuse(clusterPath, "Azure says the CA together with the server: name both, or none of them")
		}
	} else if c.Server == "" && c.ResourceID != "" {
		v.errs = append(v.errs, field.Required(clusterPath.Child("server"), "Azure says it to its own identities alone: managedIdentity, arc, servicePrincipal, azureCLI"))
	} else if v.required(clusterPath.Child("server"), c.Server) {
		v.server(clusterPath.Child("server"), c.Server)
	}
	if !asksAzure(v.config) {
		v.exactlyOne(clusterPath, choice{"caFile", c.CAFile != ""}, choice{"ca", c.CA != ""}, choice{"caCertHash", c.CACertHash != ""})
	}
	v.file(clusterPath.Child("caFile"), c.CAFile)
	v.certificates(clusterPath.Child("ca"), c.CA)
	v.pin(c)
	// Azure Resource Manager.
	if c.ResourceID != "" && !clusterForm().MatchString(c.ResourceID) {
		v.expect(clusterPath.Child("resourceId"), c.ResourceID, "expected /subscriptions/GUID/resourceGroups/NAME/providers/Microsoft.ContainerService/managedClusters/NAME")
	}
	if c.Location != "" && (c.ResourceID == "" || !locationForm().MatchString(c.Location)) {
		v.expect(clusterPath.Child("location"), c.Location, "expected the Azure region of the cluster of resourceId, e.g. westeurope")
	}
}

// server is read by kubelet: client-go's DefaultServerURL.
func (v *validation) server(at *field.Path, text string) {
	host, _, ok := serverOf(text)
	if !ok {
		v.expect(at, text, "expected https://name or https://name:port, without path")
		return
	}
	v.expect(at, text, hostName(host))
}

// serverOf is host and port of an API server's URL.
func serverOf(text string) (host string, port int, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return "", 0, false
	}
	if u.Port() == "" {
		return u.Hostname(), 443, u.Host == u.Hostname() || u.Host == "["+u.Hostname()+"]"
	}
	port, err = strconv.Atoi(u.Port())
	return u.Hostname(), port, err == nil && port > 0 && port <= 65535
}

// pin is read by berth: of an unknown cluster only the token proves that it is the
// one that is meant.
func (v *validation) pin(c *v1alpha1.Cluster) {
	at := clusterPath.Child("caCertHash")
	switch {
	case c.CACertHash == "":
	case !hashForm().MatchString(c.CACertHash):
		v.expect(at, c.CACertHash, "expected sha256: and 64 hex digits in lower case")
	case v.config.Identity.BootstrapToken == nil:
		v.refuse(at, "the CA is read from the cluster with a bootstrap token, and identity has none: name caFile")
	}
}

func (v *validation) identity(i *v1alpha1.Identity) {
	v.exactlyOne(identityPath, choice{"bootstrapToken", i.BootstrapToken != nil}, choice{"clientCertificate", i.ClientCertificate != nil},
		choice{"managedIdentity", i.ManagedIdentity != nil}, choice{"arc", i.Arc != nil},
		choice{"servicePrincipal", i.ServicePrincipal != nil}, choice{"azureCLI", i.AzureCLI != nil})
	if b := i.BootstrapToken; b != nil {
		v.bootstrapToken(identityPath.Child("bootstrapToken"), b)
	}
	if c := i.ClientCertificate; c != nil {
		v.requiredFile(identityPath.Child("clientCertificate", "certFile"), c.CertFile)
		v.requiredFile(identityPath.Child("clientCertificate", "keyFile"), c.KeyFile)
	}
	v.azure(i)
}

// bootstrapToken is read by the API server.
func (v *validation) bootstrapToken(at *field.Path, b *v1alpha1.BootstrapToken) {
	v.exactlyOne(at, choice{"tokenFile", b.TokenFile != ""}, choice{"tokenEnv", b.TokenEnv != ""}, choice{"token", b.Token != ""})
	v.file(at.Child("tokenFile"), b.TokenFile)
	v.variable(at.Child("tokenEnv"), b.TokenEnv)
	v.inline(at.Child("token"), b.Token, v.config.Identity.AllowInline, "tokenFile")
	if b.Token != "" && !tokenForm().MatchString(string(b.Token)) {
		v.refuse(at.Child("token"), "expected id.secret: 6 and 16 of a-z and 0-9")
	}
}

func (v *validation) variable(at *field.Path, name string) {
	if name != "" && !variableForm().MatchString(name) {
		v.expect(at, name, "expected the name of a variable: letters, digits and _, no digit first")
	}
}
