package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
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
	source, err := azure.NewRecorded(h, &identity)
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
	instead := "a file of your own with --identity"
	if f.environment {
		instead = "an identity of your own with AAD_LOGIN_METHOD"
	}
	return azure.Recorded(h, fromHere(f.identity), instead)
}
