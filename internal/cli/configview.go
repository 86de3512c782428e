package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/contract/node"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/paths"
	"github.com/berth-dev/berth/internal/provision"
)

func (e *env) configView() *cobra.Command {
	var output, file string
	c := &cobra.Command{
		Use: "view", Short: "Print settings with their defaults", Args: e.noArgs,
		Long: "Print settings with the defaults of what is not said: those of a NodeConfig, with secrets\n" +
			"redacted, or without -f the node agent's options, those of " + config.OptionsPath + ", which may be absent. What the\n" +
			"cluster decides where a document does not, as its domain, stands with its default.",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf(output, "json", "yaml"); err != nil {
				return e.usage(c, err)
			}
			if file == "" {
				return e.viewOptions(output)
			}
			text, err := provision.ReadDocument(c.Context(), file)
			if err != nil {
				return err
			}
			doc, err := node.Decode(text)
			if err != nil {
				return &exitcode.RefusedError{Err: err}
			}
			return encode(e.out, output, node.View(doc))
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "yaml", "print as `FORMAT`: json or yaml")
	c.Flags().StringVarP(&file, "filename", "f", "", "read a NodeConfig from `FILE`; - is standard input")
	return c
}

func (e *env) viewOptions(output string) error {
	h, err := e.open("/")
	if err != nil {
		return err
	}
	o, err := config.ReadOptions(h)
	if is[*config.Error](err) {
		return &exitcode.RefusedError{Err: err}
	}
	if err != nil {
		return err
	}
	return encode(e.out, output, o)
}

// secretFlags say where secrets of a document that is printed go.
func secretFlags(c *cobra.Command, p *node.SecretLocation) {
	c.Flags().StringVar(&p.Dir, "secrets", paths.SettingsDir, "name files below `DIR` where the document needs a secret; you write them")
	c.Flags().BoolVar(&p.Inline, "inline-secrets", false, "put secrets into the document instead")
}

func (e *env) fromKubeadm() *cobra.Command {
	var secrets node.SecretLocation
	var version string
	c := &cobra.Command{
		Use: "from-kubeadm 'kubeadm join ...'", Short: "Print the NodeConfig that says what a kubeadm join says", Args: cobra.ArbitraryArgs,
		Long: "Print the NodeConfig that says what a command line of kubeadm token create --print-join-command says. The version\n" +
			"of Kubernetes, which kubeadm has in itself, is a flag here.",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || version == "" {
				return e.usage(c, errors.New("the command line of kubeadm, in quotes, and --kubernetes-version are needed"))
			}
			doc, err := node.FromKubeadm(node.CommandWords(args), version, secrets)
			if err != nil {
				return &exitcode.RefusedError{Err: err}
			}
			if !secrets.Inline {
				fmt.Fprintf(e.err, "put the token into %s, mode 0600\n", doc.Identity.BootstrapToken.TokenFile)
			}
			return encode(e.out, "yaml", doc)
		},
	}
	c.Flags().StringVar(&version, "kubernetes-version", "", "the `VERSION` of kubelet, as 1.36.3")
	secretFlags(c, &secrets)
	return c
}

func (e *env) migrate() *cobra.Command {
	var secrets node.SecretLocation
	var file string
	c := &cobra.Command{
		Use: "migrate -f FILE", Short: "Print the NodeConfig that says what a configuration of AKS Flex Node says", Args: e.noArgs,
		Long: "Print the NodeConfig that says what a configuration of AKS Flex Node says, in its first shape or the present one.\n" +
			"What has no place in it, and what you must do, is told on standard error.",
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return e.usage(c, errors.New("-f FILE is missing"))
			}
			text, err := provision.ReadDocument(c.Context(), file)
			if err != nil {
				return err
			}
			doc, notes, err := node.FromFlex(text, secrets)
			if err != nil {
				return &exitcode.RefusedError{Err: err}
			}
			for _, n := range notes {
				fmt.Fprintf(e.err, "%s: %s\n", n.Path, n.Reason)
			}
			return encode(e.out, "yaml", doc)
		},
	}
	c.Flags().StringVarP(&file, "filename", "f", "", "read the configuration from `FILE`; - is standard input")
	secretFlags(c, &secrets)
	return c
}
