package node

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/paths"
)

// SecretLocation says where the secrets of a document that is made of another one go.
type SecretLocation struct {
	// Dir is where files with secrets will be.
	Dir string
	// Inline puts them into the document instead.
	Inline bool
}

// bootstrapToken is the identity of a token, which becomes a file unless it is wanted
// in the document.
func (p SecretLocation) bootstrapToken(token string) v1alpha1.Identity {
	if p.Inline {
		return v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{Token: v1alpha1.Secret(token)}, AllowInline: true}
	}
	return v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{TokenFile: p.Dir + "/token"}}
}

// fresh is a document that says what it is.
func fresh() *v1alpha1.NodeConfig {
	return &v1alpha1.NodeConfig{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind}
}

// join are the flags of `kubeadm join` that mean something to a NodeConfig.
type join struct {
	set                        *pflag.FlagSet
	token, discoveryToken, tls string
	hashes                     []string
	name, socket, ignored      string
	verbosity                  int
}

func newJoin() *join {
	j := &join{set: pflag.NewFlagSet("kubeadm join", pflag.ContinueOnError)}
	j.set.SetOutput(io.Discard)
	j.set.StringVar(&j.token, "token", "", "")
	j.set.StringVar(&j.discoveryToken, "discovery-token", "", "")
	j.set.StringVar(&j.tls, "tls-bootstrap-token", "", "")
	j.set.StringSliceVar(&j.hashes, "discovery-token-ca-cert-hash", nil, "")
	j.set.StringVar(&j.name, "node-name", "", "")
	j.set.StringVar(&j.socket, "cri-socket", "", "")
	j.set.StringVar(&j.ignored, "ignore-preflight-errors", "", "") // of checks that kubeadm alone has
	j.set.IntVarP(&j.verbosity, "v", "v", 0, "")
	return j
}

// CommandWords are those of a command line that stands in one argument or in several.
func CommandWords(args []string) []string {
	return strings.Fields(strings.ReplaceAll(strings.Join(args, " "), "\\\n", " "))
}

// FromKubeadm makes a document of the command line that `kubeadm token create
// --print-join-command` prints, and of the version that kubeadm has in its own name.
// A flag that has no place in a document is an error.
func FromKubeadm(words []string, version string, secrets SecretLocation) (*v1alpha1.NodeConfig, error) {
	j := newJoin()
	if err := j.set.Parse(words); err != nil {
		return nil, fmt.Errorf("kubeadm join: %w", err)
	}
	rest := j.set.Args()
	for _, word := range []string{"sudo", "kubeadm", "join"} {
		if len(rest) > 0 && rest[0] == word {
			rest = rest[1:]
		}
	}
	if len(rest) != 1 {
		return nil, errors.New("kubeadm join: expected one address of an API server, host:port")
	}
	c := fresh()
	c.Cluster.Server, c.Node.Name, c.Components.Kubernetes.Version = "https://"+withPort(rest[0]), strings.ToLower(j.name), version
	token, err := j.onlyToken()
	if err != nil {
		return nil, err
	}
	if len(j.hashes) != 1 {
		return nil, fmt.Errorf("kubeadm join: expected one --discovery-token-ca-cert-hash, got %d", len(j.hashes))
	}
	socket := strings.TrimPrefix(strings.TrimPrefix(j.socket, "unix://"), "/var")
	if socket != "" && socket != paths.ContainerdSocket {
		return nil, fmt.Errorf("kubeadm join: --cri-socket %s: berth's nodes run containerd at its own socket", j.socket)
	}
	c.Cluster.CACertHash, c.Identity = j.hashes[0], secrets.bootstrapToken(token)
	return c, validated(c)
}

// withPort is an address with kubeadm's default port where it has none.
func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return net.JoinHostPort(strings.Trim(address, "[]"), "6443")
	}
	return address
}

// onlyToken: kubeadm lets discovery and bootstrap have tokens of their own.
func (j *join) onlyToken() (string, error) {
	given := slices.DeleteFunc([]string{j.token, j.discoveryToken, j.tls}, func(s string) bool { return s == "" })
	given = slices.Compact(given)
	if len(given) != 1 {
		return "", fmt.Errorf("kubeadm join: expected one token, got %d different ones", len(given))
	}
	if !tokenForm().MatchString(given[0]) {
		return "", errors.New("kubeadm join: the token is none: expected id.secret, 6 and 16 of a-z and 0-9")
	}
	return given[0], nil
}

// validated is what a reader would refuse of a document that was made here.
func validated(c *v1alpha1.NodeConfig) error {
	full := *c
	v := &validation{config: &full}
	setDefaults(v.config)
	v.document()
	return refusal(v.errs, nil)
}
