package provision

import (
	"cmp"
	"context"
	"errors"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

var errNoCA = errors.New("the CA of the cluster is not known")

// caOf is the cluster's CA, PEM.
func caOf(q *component.SettingsQuestion, f component.Facts) []byte {
	switch {
	case q.CA != "":
		return []byte(q.CA)
	case q.CAFile != "":
		return f.Files[q.CAFile]
	}
	return f.ClusterCA
}

// askSettings asks a cluster what it tells its kubelets: as the node, if the machine is
// one, else with the bootstrap token. Nobody waits for an answer: what the machine's
// kubelet has counts where there is none, so that an API server that is away changes
// nothing. The cgroup driver stays as it is on the machine: pods that run have it. Nil
// is that nobody says anything.
func askSettings(ctx context.Context, h host.FS, q *component.SettingsQuestion, ca []byte) *component.ClusterSettings {
	known := knownSettings(h, q.Known)
	var told apiserver.KubeletSettings
	for _, a := range accesses(h, q, ca) {
		var err error
		if told, err = settingsOf(ctx, a); err == nil {
			break
		}
	}
	s := &component.ClusterSettings{DNS: told.DNS, Domain: told.Domain, CgroupDriver: cmp.Or(known.CgroupDriver, told.CgroupDriver)}
	if len(s.DNS) == 0 {
		s.DNS, s.Domain = known.DNS, cmp.Or(s.Domain, known.Domain)
	}
	if len(s.DNS) == 0 && s.Domain == "" && s.CgroupDriver == "" {
		return nil
	}
	return s
}

// knownSettings are those of the kubelet that is on the machine.
func knownSettings(h host.FS, file string) apiserver.KubeletSettings {
	text, err := h.ReadFile(file)
	if err != nil {
		return apiserver.KubeletSettings{}
	}
	return apiserver.ParseKubeletSettings(text)
}

// accesses are the ways to ask, the best first.
func accesses(h host.FS, q *component.SettingsQuestion, ca []byte) []apiserver.Access {
	var out []apiserver.Access
	if k, err := kubeconfig.Read(h, q.Kubeconfig); err == nil && k.Server == q.Server {
		out = append(out, apiserver.Access{Server: q.Server, CA: ca, Certificate: k.Certificate, Key: k.Key, Token: k.Token})
	}
	if token, err := identity.BootstrapToken(h, q.TokenFile, q.TokenEnv, q.Token); err == nil && token != "" {
		out = append(out, apiserver.Access{Server: q.Server, CA: ca, Token: token})
	}
	return out
}

func settingsOf(ctx context.Context, a apiserver.Access) (apiserver.KubeletSettings, error) {
	if len(a.CA) == 0 { // the machine's own roots are no reason to trust a cluster
		return apiserver.KubeletSettings{}, errNoCA
	}
	c, err := apiserver.NewClient(a)
	if err != nil {
		return apiserver.KubeletSettings{}, err
	}
	defer c.Close()
	return c.KubeletSettings(ctx)
}
