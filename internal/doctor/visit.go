package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/survey"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
	"github.com/berth-dev/berth/internal/kubeletconfig"
	"github.com/berth-dev/berth/internal/provision"
)

// Options are what the checks look at.
type Options struct {
	Host   host.Host
	Survey Survey
	// UID is who looks.
	UID int
	// Env is the environment of the program.
	Env func(string) string
	// Config is the document where it is a NodeConfig; else nil.
	Config *v1alpha1.NodeConfig
	// State is what the document asks for on this machine; nil where there is no
	// document.
	State func(context.Context) (*desired.State, error)
	// Plan is what it would do to this machine.
	Plan    func(context.Context, *desired.State) (*converge.Plan, error)
	Fetcher Fetcher
	// Tokens gives the token of an identity of Azure, which is kept nowhere.
	Tokens func(context.Context, *desired.AzureIdentity, *desired.Egress) (desired.Secret, error)
	// References are what the document refers to; Settled says whether the machine is a node
	// of its cluster.
	References component.References
	Settled    func() bool
	// Granted is what an identity of Azure may do.
	Granted func(context.Context, AzureQuestion) ([]azure.Grant, error)
	// Runtime connects to the container runtime.
	Runtime func(context.Context) (Runtime, error)
	// Healthz is kubelet's health endpoint; "" is the one of its configuration.
	Healthz string
}

// Survey is package survey, or a model of it.
type Survey interface {
	Space(path string) (survey.Space, error)
	Addresses() ([]survey.Address, error)
	Routes() ([]survey.Route, error)
	Listeners() ([]survey.Listener, error)
	Holder(inode uint64) string
	Dropping() ([]string, error)
}

// Fetcher is package artifact as far as it is needed here.
type Fetcher interface {
	Reach(ctx context.Context, h host.FS, a *desired.Artifact) ([]artifact.Reached, error)
	Version(ctx context.Context, h host.Host, path string) (string, error)
}

// Runtime is the container runtime as far as it is needed here.
type Runtime interface {
	Conditions(ctx context.Context) ([]cri.Condition, error)
	Close()
}

// visit is one run of the checks. What several of them need is found out once, by the
// first that asks, and under the time of all.
type visit struct {
	Options
	when Occasion
	// state is the document's, or why there is none.
	state func() (*desired.State, error)
	// kubeconfig is kubelet's.
	kubeconfig func() (*kubeconfig.Config, error)
	// kubeletConfig is what kubelet reads, or will read, all of it merged.
	kubeletConfig func() (map[string]any, error)
	// server is the API server; exchange what it says to anybody.
	server   func() (string, error)
	exchange func() (apiserver.Exchange, error)
	// credential is what the machine shows to the cluster at first.
	credential func() (*credential, error)
	// unregistered: the join is going to register the machine with Azure Arc.
	unregistered func() bool
	resolver     *net.Resolver
}

// stateBudget is how long it may take to find out what a document means: a cluster may
// have to be asked for its CA.
const stateBudget = 5 * time.Second

// errNoDocument is the state of a visit that has no document.
var errNoDocument = errors.New("there is no document")

func newVisit(ctx context.Context, when Occasion, o Options) *visit {
	o.Host = host.ReadOnly{Host: o.Host}
	v := &visit{Options: o, when: when, resolver: &net.Resolver{}}
	v.state = sync.OnceValues(func() (*desired.State, error) {
		if o.State == nil {
			return nil, errNoDocument
		}
		if a := o.References.Azure; a != nil && v.hasNone(a.Identity) {
			return nil, fmt.Errorf("how the cluster is reached is asked as the machine: %w", errUnregistered)
		}
		ctx, cancel := context.WithTimeout(ctx, stateBudget)
		defer cancel()
		return o.State(ctx)
	})
	v.unregistered = sync.OnceValue(func() bool { return v.findUnregistered(ctx) })
	v.kubeconfig = sync.OnceValues(func() (*kubeconfig.Config, error) { return kubeconfig.Read(v.Host, v.kubeconfigPath()) })
	v.kubeletConfig = sync.OnceValues(func() (map[string]any, error) { return v.findKubeletConfig(ctx) })
	v.server = sync.OnceValues(v.findServer)
	v.credential = sync.OnceValues(func() (*credential, error) { return v.findCredential(ctx) })
	v.exchange = sync.OnceValues(func() (apiserver.Exchange, error) {
		server, err := v.server()
		if err != nil {
			return apiserver.Exchange{}, err
		}
		return apiserver.Anonymous(ctx, server)
	})
	return v
}

// kubeconfigPath is the first of those of kubelet that is there; berth's where none is.
func (v *visit) kubeconfigPath() string {
	for _, p := range provision.Kubeconfigs(v.Host) {
		if there, err := v.there(p); there || err != nil {
			return p
		}
	}
	return kubelet.Kubeconfig
}

// findServer is the API server's URL: that of kubelet, or that of the document, which a
// NodeConfig says before it is known what the rest of it means.
func (v *visit) findServer() (string, error) {
	if v.when == Node {
		k, err := v.kubeconfig()
		if err != nil {
			return "", err
		}
		return k.Server, nil
	}
	if v.Config != nil && v.Config.Cluster.Server != "" {
		return v.Config.Cluster.Server, nil
	}
	st, err := v.state()
	if err != nil {
		return "", err
	}
	if c, ok := st.Lookup(desired.CheckID(desired.CheckAPIServer)).(*desired.Check); ok {
		return fmt.Sprintf("https://%s", net.JoinHostPort(c.Host, fmt.Sprint(c.Port))), nil
	}
	return "", errors.New("the document names no API server")
}

// ca is the cluster's, PEM; empty for the machine's own roots.
func (v *visit) ca() ([]byte, error) {
	if v.when == Node {
		k, err := v.kubeconfig()
		if err != nil {
			return nil, err
		}
		return k.CA, nil
	}
	st, err := v.state()
	if err != nil {
		return nil, err
	}
	if c, ok := st.Lookup(desired.CheckID(desired.CheckAPIServer)).(*desired.Check); ok {
		return []byte(c.CA), nil
	}
	return nil, errors.New("the document names no API server")
}

// find are the resources of one type in a state.
func find[R desired.Resource](st *desired.State) []R {
	var out []R
	for _, r := range st.Resources {
		if one, ok := r.(R); ok {
			out = append(out, one)
		}
	}
	return out
}

// port is one of kubelet's.
func port(config map[string]any, name string, otherwise int) int {
	if n, ok := config[name].(float64); ok {
		return int(n)
	}
	return otherwise
}

// line is the first line of a file; "" if there is none.
func (v *visit) line(path string) (string, error) {
	b, err := v.Host.ReadFile(path)
	text, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(text), err
}

// there says whether there is something at a path.
func (v *visit) there(path string) (bool, error) {
	_, err := v.Host.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// active says whether a unit runs.
func (v *visit) active(ctx context.Context, unit string) (bool, error) {
	u, err := v.Host.Unit(ctx, unit)
	return u.ActiveState == "active" || u.ActiveState == "activating" || u.ActiveState == "reloading", err
}

// findKubeletConfig reads what kubelet runs with; before there is a node, what the document
// has it run with.
func (v *visit) findKubeletConfig(ctx context.Context) (map[string]any, error) {
	m := kubeletconfig.Machine{Host: v.Host}
	if v.when != Node {
		st, err := v.state()
		if err != nil {
			return nil, err
		}
		m.Wanted = map[string]*desired.File{}
		for _, f := range find[*desired.File](st) {
			m.Wanted[f.Path] = f
		}
	}
	return m.Read(ctx)
}
