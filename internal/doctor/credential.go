package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/identity"
)

// credential is what a machine shows to the cluster at first.
type credential struct {
	token desired.Secret
	// certificate and key are PEM.
	certificate, key []byte
	// azure is the kind of the identity whose token it is; "" for others.
	azure desired.AzureKind
	// held: the machine has a certificate for this Node already, and nothing is asked for.
	held bool
	// direct: kubelet shows it as long as it runs, and asks for no certificate.
	direct bool
	// field is where the document names it.
	field string
}

// errNoCredential: nothing here knows how the document's identity shows itself.
var errNoCredential = errors.New("what the machine shows to the cluster is not in the document")

func (v *visit) findCredential(ctx context.Context) (*credential, error) {
	if v.Config != nil && v.Config.Identity.ClientCertificate != nil {
		return v.ownCertificate()
	}
	st, err := v.state()
	if err != nil {
		return nil, err
	}
	all := find[*desired.ClientCertificate](st)
	if len(all) == 0 {
		return v.directToken(ctx, st)
	}
	c := all[0]
	out := &credential{field: c.Field, token: c.Token}
	if out.held, _, err = identity.New(v.Host).Valid(v.Host, c); err == nil && out.held {
		return out, nil
	}
	if c.Azure != nil && v.Tokens != nil {
		out.azure = c.Azure.Kind
		if v.hasNone(c.Azure) {
			return out, errUnregistered
		}
		out.token, err = v.Tokens(ctx, c.Azure, c.Via)
		return out, err
	}
	return out, v.readToken(c, out)
}

// directToken is the first of those that kubelet is going to show.
func (v *visit) directToken(ctx context.Context, st *desired.State) (*credential, error) {
	f, ok := st.Lookup(desired.FileID(azureidentity.Path)).(*desired.File)
	if !ok || v.Tokens == nil {
		return nil, errNoCredential
	}
	a, err := azureidentity.Parse(f.Content.Data())
	if err != nil {
		return nil, err
	}
	out := &credential{azure: a.Kind, direct: true, field: "identity." + string(a.Kind)}
	if v.hasNone(&a) {
		return out, errUnregistered
	}
	way, err := v.way()
	if err != nil {
		return nil, err
	}
	out.token, err = v.Tokens(ctx, &a, way)
	return out, err
}

// way is how the document has tokens fetched: the machine's own proxy and CAs may not be
// there yet.
func (v *visit) way() (*desired.Egress, error) {
	if v.References.Way == nil {
		return nil, nil
	}
	way := *v.References.Way
	for _, file := range v.References.WayCAFiles {
		text, err := v.Host.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("trust.caFiles: %w", err)
		}
		way.CAs = append(slices.Clone(way.CAs), string(text))
	}
	return &way, nil
}

// readToken takes the token from where the document has it.
func (v *visit) readToken(c *desired.ClientCertificate, out *credential) error {
	switch {
	case c.TokenFile != "":
		text, err := v.Host.ReadFile(c.TokenFile)
		if err != nil {
			return err
		}
		out.token = desired.Secret(strings.TrimSpace(string(text)))
	case c.TokenEnv != "":
		out.token = desired.Secret(strings.TrimSpace(v.Env(c.TokenEnv)))
		if out.token == "" {
			return fmt.Errorf("the variable %s is not set: %w", c.TokenEnv, fs.ErrNotExist)
		}
	}
	if out.token == "" {
		return errNoCredential
	}
	return nil
}

// ownCertificate reads the pair that a NodeConfig names.
func (v *visit) ownCertificate() (*credential, error) {
	own, out := v.Config.Identity.ClientCertificate, &credential{field: "identity.clientCertificate"}
	var err error
	if out.certificate, err = v.Host.ReadFile(own.CertFile); err != nil {
		return out, err
	}
	if out.key, err = v.Host.ReadFile(own.KeyFile); err != nil {
		return out, err
	}
	_, err = tls.X509KeyPair(out.certificate, out.key)
	return out, err
}

// isHidden says that a file is not for the caller to read. Programs that do not start
// and connections that are refused are something else.
func isHidden(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Op != "fork/exec" && errors.Is(e, fs.ErrPermission)
}

// noCredential says why there is none.
func noCredential(c *credential, err error) *finding {
	field := ""
	if c != nil {
		field = c.field
	}
	switch {
	case errors.Is(err, errUnregistered):
		return unknownf("", "%v", err)
	case c != nil && c.azure != "" && !isHidden(err):
		return failf(helps(err), "%v", err).at(field)
	case errors.Is(err, fs.ErrPermission):
		return unread("the credential", err)
	case errors.Is(err, fs.ErrNotExist) && c != nil:
		return failf("put it there, mode 0600", "%v", err).at(field)
	case c != nil && !errors.Is(err, errNoCredential):
		return failf("put a pair there that fits", "%v", err).at(field)
	}
	return unknownf("", "%v", err)
}

const heldText = "the machine has a certificate of this cluster already, and needs nothing else"

// client speaks to the API server with a credential, and only where the server is
// known by its CA.
func (v *visit) client(c *credential) (*apiserver.Client, error) {
	server, err := v.server()
	if err != nil {
		return nil, err
	}
	ca, err := v.ca()
	if err != nil {
		return nil, err
	}
	return apiserver.NewClient(apiserver.Access{Server: server, CA: ca, Token: c.token, Certificate: c.certificate, Key: c.key})
}

// create is what a node asks of a cluster at first.
var create = apiserver.Right{Verb: "create", Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}

func checkCredential(ctx context.Context, v *visit) *finding {
	c, err := v.credential()
	switch {
	case err != nil:
		return noCredential(c, err)
	case c.held:
		return okf(heldText)
	}
	client, err := v.client(c)
	if err != nil {
		return unknownf("", "the cluster can't be asked: %v", err)
	}
	defer client.Close()
	_, _, err = client.May(ctx, create)
	switch {
	case apiserver.Unknown(err):
		return failf(c.renewal(), "the cluster does not know %s: it is over, was deleted, or is of another cluster", c).at(c.field)
	case err != nil:
		return unknownf("", "the cluster can't be asked: %v", err)
	}
	return okf("the cluster knows %s", c)
}

// String names it without the secret in it.
func (c *credential) String() string {
	if id := c.tokenID(); id != "" {
		return "the bootstrap token " + id
	}
	if c.azure != "" {
		return "the token of the identity " + string(c.azure)
	}
	if len(c.certificate) > 0 {
		return "the client certificate"
	}
	return "the token"
}

// tokenID is the public part of a bootstrap token; "" of anything else.
func (c *credential) tokenID() string {
	id, secret, _ := strings.Cut(c.token.Reveal(), ".")
	if c.azure == "" && len(id) == 6 && len(secret) == 16 {
		return id
	}
	return ""
}

func (c *credential) renewal() string {
	switch {
	case c.tokenID() != "":
		return "kubeadm token create, on the cluster"
	case c.azure != "":
		return "check that the cluster takes tokens of Microsoft Entra ID, of this tenant and for this server (azure.serverId)"
	}
	return "have the cluster give another one"
}

// soon is an end that a join may not come before.
const soon = time.Hour

func checkExpiry(ctx context.Context, v *visit) *finding {
	c, err := v.credential()
	switch {
	case err != nil:
		return noCredential(c, err)
	case c.held:
		return okf(heldText)
	case c.azure != "":
		return okf("%s: a new one is asked for whenever it is needed", c)
	}
	end, err := v.end(ctx, c)
	left := time.Until(end).Round(time.Second)
	switch {
	case apiserver.Unknown(err):
		return unknownf("", "the cluster does not know %s", c)
	case apierrors.IsForbidden(err):
		return unknownf("kubeadm token list, on the cluster", "%s may not see its own end", c)
	case err != nil:
		return unknownf("", "the end of %s: %v", c, err)
	case end.IsZero():
		return okf("%s has no end", c)
	case left <= 0:
		return failf(c.renewal(), "%s ended at %s", c, end.UTC().Format(time.RFC3339)).at(c.field)
	case left < soon:
		return warnf(c.renewal(), "%s ends in %s", c, left).at(c.field)
	}
	return okf("%s is good until %s", c, end.UTC().Format(time.RFC3339))
}

// end is when a credential ends; zero if it does not. Of a bootstrap token the cluster
// says it, to those who may read its Secret.
func (v *visit) end(ctx context.Context, c *credential) (time.Time, error) {
	if len(c.certificate) > 0 {
		cert, err := firstCertificate(c.certificate)
		if err != nil {
			return time.Time{}, err
		}
		return cert.NotAfter, nil
	}
	id := c.tokenID()
	if id == "" {
		return jwtEnd(c.token.Reveal())
	}
	client, err := v.client(c)
	if err != nil {
		return time.Time{}, err
	}
	defer client.Close()
	secret, err := client.GetSecret(ctx, "kube-system", "bootstrap-token-"+id)
	if err != nil {
		return time.Time{}, err
	}
	text := string(secret.Data["expiration"])
	if text == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339, text)
}

func firstCertificate(text []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("there is no certificate in it")
}

// jwtEnd is the claim exp of a JSON Web Token (RFC 7519); zero if it has none.
func jwtEnd(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, errors.New("it is neither a bootstrap token nor a JSON Web Token")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(body, &claims) != nil {
		return time.Time{}, errors.New("its claims can't be read")
	}
	if claims.Exp == 0 {
		return time.Time{}, nil
	}
	return time.Unix(claims.Exp, 0), nil
}

func checkApproval(ctx context.Context, v *visit) *finding {
	c, err := v.credential()
	switch {
	case err != nil:
		return noCredential(c, err)
	case c.held:
		return okf(heldText)
	case len(c.certificate) > 0:
		return okf("the document has the node's certificate: none is asked for")
	}
	client, err := v.client(c)
	if err != nil {
		return unknownf("", "the cluster can't be asked: %v", err)
	}
	defer client.Close()
	if c.direct {
		return checkDirect(ctx, client, c)
	}
	approve := create
	approve.Subresource = "nodeclient"
	f := &finding{}
	if !may(ctx, f, client, create) {
		if len(f.notes) == 0 {
			f.fail(c.binding("system:node-bootstrapper"), "%s may not %s", c, create).at(c.field)
		}
		return f
	}
	if !may(ctx, f, client, approve) && len(f.notes) == 0 {
		return f.warn("kubectl certificate approve, or run berth approver, or "+c.binding("system:certificates.k8s.io:certificatesigningrequests:nodeclient"),
			"the request may be made, and the cluster does not approve it by itself")
	}
	return f.ok("the request may be made, and is approved by the cluster itself")
}

// checkDirect: nobody approves anything, and the identity needs a Node's rights itself.
func checkDirect(ctx context.Context, client *apiserver.Client, c *credential) *finding {
	f, register := &finding{}, apiserver.Right{Verb: "create", Resource: "nodes"}
	if !may(ctx, f, client, register) && len(f.notes) == 0 {
		f.fail("berth rbac --direct --object-id OBJECT-ID | kubectl apply -f -, with the identity's", "%s may not %s", c, register).at(c.field)
	}
	return f.ok("kubelet shows the identity's tokens: no certificate is asked for")
}

// binding is how the cluster gives it what a ClusterRole may do.
func (c *credential) binding(role string) string {
	if c.azure != "" {
		return "berth rbac --object-id OBJECT-ID | kubectl apply -f -, with the identity's"
	}
	return "bind the ClusterRole " + role + " to the group of the cluster's bootstrap tokens"
}

// may asks for a right; what can't be asked is noted.
func may(ctx context.Context, f *finding, client *apiserver.Client, r apiserver.Right) bool {
	ok, _, err := client.May(ctx, r)
	switch {
	case apiserver.Unknown(err):
		f.unknown("", "the cluster does not know who asks")
	case err != nil:
		f.unknown("", "the cluster can't be asked: %v", err)
	}
	return ok
}
