package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// tokenFlags are those of token.
type tokenFlags struct {
	// identity is a file, server the audience that the caller wants; "" is that of the
	// identity.
	identity, server string
	// environment: variables may name the identity.
	environment bool
}

func (e *env) token() *cobra.Command {
	var f tokenFlags
	c := &cobra.Command{
		Use: "token", Short: "Print a token of the machine's Azure identity, as a Kubernetes credential plugin", Args: e.noArgs,
		Long: "Print a token with which this machine shows the API server who it is, as client-go's credential plugins do\n" +
			"(client.authentication.k8s.io/v1). The identity is the one that berth wrote down when the machine joined; the token is\n" +
			"for that cluster's API server alone. Tokens are kept in " + azure.CacheDir + " and renewed early. See docs/azure.md.",
		RunE: func(c *cobra.Command, _ []string) error { return e.runToken(c, f) },
	}
	c.Flags().StringVar(&f.identity, "identity", azureidentity.Path, "the `FILE` that says who the machine is")
	c.Flags().StringVar(&f.server, "server-id", "", "refuse unless the token is for the Entra application `GUID`; none: that of the identity")
	return c
}

// kubelogin is token under the name of AKS Flex Node, with its flags.
func (e *env) kubelogin() *cobra.Command {
	f := tokenFlags{identity: azureidentity.Path, environment: true}
	var pop bool
	var claims string
	k := &cobra.Command{
		Use: "kubelogin", Short: "Print a token of the machine's Azure identity, as a Kubernetes credential plugin", Args: e.noArgs,
		Long: "Print a token of the identity that AAD_LOGIN_METHOD names (msi or spn, with AZURE_CLIENT_ID, AZURE_TENANT_ID and\n" +
			"AAD_SERVICE_PRINCIPAL_CLIENT_ID and _SECRET), else of that in " + azureidentity.Path + ".",
		RunE: func(c *cobra.Command, _ []string) error {
			if pop || claims != "" {
				return e.usage(c, errors.New("proof-of-possession tokens are not supported: leave --pop-enabled and --pop-claims out"))
			}
			return e.runToken(c, f)
		},
	}
	k.Flags().StringVar(&f.server, "server-id", "", "refuse unless the token is for the Entra application `GUID`; none: that of the identity")
	k.Flags().BoolVar(&pop, "pop-enabled", false, "refused")
	k.Flags().StringVar(&claims, "pop-claims", "", "refused")
	c := &cobra.Command{Use: "token", Short: "Credential plugins", Args: cobra.ArbitraryArgs, RunE: e.noCommand}
	c.AddCommand(k)
	return c
}

func (e *env) runToken(c *cobra.Command, f tokenFlags) error {
	version, err := azure.ExecVersion(os.Getenv(azure.ExecInfo))
	if err != nil {
		return err
	}
	h, err := e.open("/")
	if err != nil {
		return err
	}
	identity, err := f.read(h)
	if err != nil {
		return err
	}
	if f.server != "" && !strings.EqualFold(f.server, identity.ServerID) {
		return &exitcode.Error{Err: fmt.Errorf("a token for %s is asked for, and the cluster of this machine is %s", f.server, identity.ServerID),
			Remedy: "Leave --server-id out: this machine has tokens for its own cluster's API server only."}
	}
	ctx, cancel := context.WithTimeout(c.Context(), azure.Budget)
	defer cancel()
	source, err := tokenSource(h, &identity)
	if err != nil {
		return err
	}
	credential, err := e.credential(ctx, source, &identity)
	if err != nil {
		return err
	}
	text, err := credential.ExecCredential(version)
	if err != nil {
		return err
	}
	_, err = e.out.Write(text)
	return err
}

// proxyVariables name a proxy to programs.
var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"}

// tokenSource asks by the proxy of the machine's document where the environment names
// none: kubelet has it from its unit, and nobody else who calls this as its plugin.
func tokenSource(h host.Host, a *desired.AzureIdentity) (*azure.Source, error) {
	if a.Kind != desired.AzureServicePrincipal {
		return azure.New(h), nil
	}
	via, err := documentProxy(h, os.Getenv)
	return azure.New(h).By(via), err
}

// documentProxy is the way out of the machine's document; nil where there is none, or the
// environment names another.
func documentProxy(h host.FS, env func(string) string) (*desired.Egress, error) {
	if slices.ContainsFunc(proxyVariables, func(name string) bool { return env(name) != "" }) {
		return nil, nil
	}
	text, err := h.ReadFile(proxy.VariablesFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // it is root's
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the machine's proxy: %w", err)
	}
	via, err := proxy.Read(string(text))
	if err != nil {
		return nil, &exitcode.Error{Err: fmt.Errorf("%s: %w", proxy.VariablesFile, err), Remedy: "Apply the machine's document again: berth join writes the file."}
	}
	return via, nil
}

// credential is one of those that are kept, where the caller may keep any.
func (e *env) credential(ctx context.Context, s *azure.Source, a *desired.AzureIdentity) (azure.Credential, error) {
	if e.uid != 0 {
		t, err := s.ForServer(ctx, a)
		return azure.Credential{Token: t, Renew: t.Expires}, err
	}
	c, err := s.Cached(ctx, a)
	if c.Trouble != nil {
		fmt.Fprintf(e.err, "warning: %v\n", c.Trouble)
	}
	return c, err
}

// read reads who the machine is.
func (f tokenFlags) read(h azure.Host) (desired.AzureIdentity, error) {
	if f.environment {
		if a, ok, err := azure.Published(h, os.Getenv); ok || err != nil {
			return a, err
		}
	}
	text, err := h.ReadFile(f.identity)
	if errors.Is(err, fs.ErrNotExist) {
		return desired.AzureIdentity{}, &exitcode.Error{Err: fmt.Errorf("read the machine's identity: %w", err),
			Remedy: "This machine has joined no cluster with an identity of Azure: apply a NodeConfig with one (identity.managedIdentity, arc or servicePrincipal)."}
	}
	if errors.Is(err, fs.ErrPermission) {
		own := "a file of your own with --identity"
		if f.environment {
			own = "an identity of your own with AAD_LOGIN_METHOD"
		}
		return desired.AzureIdentity{}, &exitcode.Error{Err: fmt.Errorf("read the machine's identity: %w", err),
			Remedy: "Run it as root, who alone may read the machine's identity, or name " + own + "."}
	}
	if err != nil {
		return desired.AzureIdentity{}, fmt.Errorf("read the machine's identity: %w", err)
	}
	a, err := azureidentity.Parse(text)
	if err == nil && a.Kind == desired.AzureCLI {
		err = errors.New("the Azure CLI's login serves for the time of a join alone")
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w", f.identity, err)
	}
	return a, nil
}
