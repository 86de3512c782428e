package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component/azureidentity"
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
	h, err := e.open("/")
	if err != nil {
		return err
	}
	text, err := azure.ExecPlugin{
		Host: h, Identity: fromHere(f.identity), Server: f.server, Environment: f.environment, Keep: e.uid == 0, Getenv: os.Getenv,
		Warn: func(err error) { fmt.Fprintf(e.err, "warning: %v\n", err) },
	}.Credential(c.Context())
	if err != nil {
		return err
	}
	_, err = e.out.Write(text)
	return err
}
