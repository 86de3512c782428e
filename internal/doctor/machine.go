package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/survey"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/provision"
)

// nodeName is as what the machine registers.
func (v *visit) nodeName() string {
	if v.when == Node {
		name, err := identity.NodeName(v.Host, v.kubeconfigPath())
		if err == nil && name != "" {
			return name
		}
	} else if v.Config != nil && v.Config.Node.Name != "" {
		return v.Config.Node.Name
	} else if st, err := v.state(); err == nil {
		return provision.NodeOf(v.Host, st).Name
	}
	return provision.Hostname(v.Host)
}

func checkHostname(_ context.Context, v *visit) *finding {
	name := v.nodeName()
	const remedy = "set the machine's name with hostnamectl, or node.name in the document"
	errs := validation.IsDNS1123Subdomain(name)
	switch {
	case name == "":
		return unknownf(remedy, "the kernel does not say the machine's name")
	case len(errs) > 0:
		return failf(remedy, "%q is no name for a Node: %s", name, errs[0])
	case len(name) > validation.LabelValueMaxLength:
		return failf(remedy, "%q is longer than %d characters, which the label kubernetes.io/hostname takes", name, validation.LabelValueMaxLength)
	case name == "localhost" || strings.HasPrefix(name, "localhost."):
		return failf(remedy, "the machine is called %s: each node needs a name of its own", name)
	}
	return okf("%s", name)
}

// kubeletPorts are where kubelet listens: the API server comes to the first.
var kubeletPorts = []struct {
	field  string
	number int
	local  bool
}{{"port", 10250, false}, {"healthzPort", 10248, true}}

func checkPorts(ctx context.Context, v *visit) *finding {
	all, err := v.Survey.Listeners()
	if err != nil {
		return unread("the list of sockets", err)
	}
	config, err := v.kubeletConfig()
	if err != nil {
		return unread("which ports kubelet is given", err)
	}
	f := &finding{}
	own, err := v.active(ctx, kubelet.Unit)
	for _, p := range kubeletPorts {
		number := port(config, p.field, p.number)
		at := slices.IndexFunc(all, func(l survey.Listener) bool { return int(l.Port) == number && clashes(l.Address, p.local) })
		if at < 0 || number == 0 {
			f.ok("%d is free", number)
			continue
		}
		holder := v.Survey.Holder(all[at].Inode)
		switch {
		case strings.HasPrefix(holder, "kubelet ") || holder == "" && err == nil && own:
			f.ok("%d is kubelet's own", number)
		default:
			f.fail("end that program, or give kubelet another port", "port %d is in use by %s", number, cmp.Or(holder, "another program"))
		}
	}
	return f
}

// clashes says whether a socket keeps kubelet from a port, of all addresses or of the
// loopback's.
func clashes(a netip.Addr, local bool) bool {
	return !local || a.IsUnspecified() || a == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// runtimes are those that a node may have besides containerd.
var runtimes = []struct{ unit, name string }{{"docker.service", "Docker"}, {"crio.service", "CRI-O"}, {"cri-docker.service", "cri-dockerd"}}

func checkRuntimes(ctx context.Context, v *visit) *finding {
	f := &finding{}
	for _, r := range runtimes {
		active, err := v.active(ctx, r.unit)
		switch {
		case err != nil:
			return f.unread("which units run", err)
		case active:
			f.warn("systemctl disable --now "+r.unit+", if nothing needs it", "%s runs: its containers are not Kubernetes', and use the same memory and packet filter", r.name)
		}
	}
	return f.ok("none besides containerd")
}

// marks are what other ways to a node leave on a machine. A configuration of AKS Flex Node
// is none: berth takes it, too.
var marks = []struct{ path, of, remedy string }{
	{"/etc/kubernetes/admin.conf", "a control plane of kubeadm", "take another machine"},
	{"/etc/kubernetes/kubelet.conf", "kubeadm join", "kubeadm reset"},
	{"/etc/rancher/k3s", "k3s", "k3s-agent-uninstall.sh"},
	{"/etc/rancher/rke2", "RKE2", "rke2-uninstall.sh"},
	{"/var/snap/microk8s", "MicroK8s", "snap remove microk8s"},
	{"/etc/aks-flex-node/daemon-state.json", "AKS Flex Node", "aks-flex-node unbootstrap, of the program that put it there"},
	{"/etc/aks-flex-node/daemon-credentials", "AKS Flex Node", "aks-flex-node unbootstrap, of the program that put it there"},
	{"/var/lib/machines/kube1", "AKS Flex Node", "aks-flex-node unbootstrap, of the program that put it there"},
	{"/var/lib/machines/kube2", "AKS Flex Node", "aks-flex-node unbootstrap, of the program that put it there"},
}

func checkEarlier(ctx context.Context, v *visit) *finding {
	f := &finding{}
	for _, m := range marks {
		there, err := v.there(m.path)
		switch {
		case err != nil:
			f.unread(m.path, err)
		case there && v.ours(m.path):
		case there:
			f.fail(m.remedy, "%s is there: the machine was set up by %s", m.path, m.of)
		}
	}
	v.membership(ctx, f)
	return f.ok("there is none")
}

// ours says whether the document itself wants a path, or something below it.
func (v *visit) ours(path string) bool {
	st, err := v.state()
	return err == nil && slices.ContainsFunc(st.Resources, func(r desired.Resource) bool {
		return slices.ContainsFunc(r.FilePaths(), func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") })
	})
}

// membership says of which cluster the machine is a node already.
func (v *visit) membership(ctx context.Context, f *finding) {
	k, err := v.kubeconfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		active, err := v.active(ctx, kubelet.Unit)
		if err != nil {
			f.unread("whether kubelet runs", err)
		} else if active {
			f.fail("stop it, and take away what put it there", "kubelet runs, and not with %s", v.kubeconfigPath())
		}
		return
	case err != nil:
		f.unread(v.kubeconfigPath(), err)
		return
	}
	server, err := v.server()
	switch {
	case err != nil:
		f.unknown("", "the machine is a node of %s; whether the document means that cluster is not known", k.Server)
	case hostPort(server) != hostPort(k.Server):
		f.fail("berth leave", "the machine is a node of another cluster, %s", k.Server)
	default:
		f.ok("the machine is a node of this cluster already")
	}
}

func checkFirewall(ctx context.Context, v *visit) *finding {
	f, which := &finding{}, "kubelet's TCP port"
	if config, err := v.kubeletConfig(); err == nil {
		which = fmt.Sprintf("TCP port %d", port(config, "port", 10250))
	}
	remedy := fmt.Sprintf("see that the API server reaches %s of this machine, and nodes each other's pods", which)
	for _, unit := range []string{"firewalld.service", "ufw.service"} {
		if active, err := v.active(ctx, unit); err == nil && active {
			f.warn(remedy, "%s runs", unit)
		}
	}
	chains, err := v.Survey.Dropping()
	for _, c := range chains {
		f.warn(remedy, "the chain %s drops what none of its rules accepts", c)
	}
	switch {
	case errors.Is(err, survey.ErrLegacy):
		f.unknown("look at iptables-legacy -S INPUT", "%v", err)
	case err != nil:
		f.unread("the packet filter", err)
	}
	return f.ok("no chain drops what comes in")
}
