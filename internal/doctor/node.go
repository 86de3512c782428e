package doctor

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/cri"
)

// unit says how a unit is that has to run; false where that is all there is to say.
func (v *visit) unit(ctx context.Context, f *finding, name string) bool {
	u, err := v.Host.Unit(ctx, name)
	if err != nil {
		f.unread(name, err)
		return false
	}
	short := strings.TrimSuffix(name, ".service")
	switch {
	case u.LoadState != "loaded":
		f.fail("berth apply, or berth provision", "%s: %s", name, u.LoadState)
	case u.ActiveState == "active":
		f.ok("%s runs", name)
		return true
	case u.ActiveState == "failed" || u.SubState == "auto-restart":
		f.fail("journalctl -u "+short, "%s is %s (%s), result %s, exit status %d, %d restarts", name, u.ActiveState, u.SubState, u.Result, u.ExecMainStatus, u.NRestarts)
	default:
		f.fail("systemctl start "+short, "%s is %s (%s)", name, u.ActiveState, u.SubState)
	}
	return false
}

// askRuntime is what the container runtime says of itself.
func (v *visit) askRuntime(ctx context.Context) ([]cri.Condition, error) {
	ctx, cancel := context.WithTimeout(ctx, dialBudget)
	defer cancel()
	r, err := v.Runtime(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Conditions(ctx)
}

func checkContainerd(ctx context.Context, v *visit) *finding {
	f := &finding{}
	if !v.unit(ctx, f, containerd.Unit) {
		return f
	}
	all, err := v.askRuntime(ctx)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return f.unread("the runtime's socket", err)
	case err != nil:
		return f.fail("journalctl -u containerd", "%v", err)
	}
	for _, c := range all {
		if c.Type == "RuntimeReady" && !c.OK {
			f.fail("journalctl -u containerd", "%s: %s", c.Reason, c.Message)
		}
	}
	return f
}

func checkCNI(ctx context.Context, v *visit) *finding {
	f := &finding{}
	remedy := "see the log of the cluster's network add-on: it writes the configuration when its pod runs on this node"
	configured, err := v.networkConfigured()
	if err != nil {
		return f.unread(cni.ConfDir, err)
	}
	if !configured {
		return f.fail(remedy, "%s has no configuration of a network", cni.ConfDir)
	}
	all, err := v.askRuntime(ctx)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return f.unread("the runtime's socket", err)
	case err != nil:
		return f.unknown("", "the runtime does not say: %v", err)
	}
	for _, c := range all {
		if c.Type == "NetworkReady" && !c.OK {
			f.fail(remedy, "%s: %s", c.Reason, c.Message)
		}
	}
	return f.ok("the runtime has a network for pods")
}

func (v *visit) networkConfigured() (bool, error) {
	names, err := v.Host.ReadDir(cni.ConfDir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return slices.Contains([]string{".conf", ".conflist", ".json"}, path.Ext(n))
	}), err
}

func checkKubelet(ctx context.Context, v *visit) *finding {
	f := &finding{}
	if !v.unit(ctx, f, kubelet.Unit) {
		return f
	}
	at, err := v.healthz()
	switch {
	case err != nil:
		return f.unread("where kubelet says how it is", err)
	case at == "":
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, dialBudget)
	defer cancel()
	if err := apiserver.KubeletHealth(ctx, at); err != nil {
		return f.fail("journalctl -u kubelet", "%v", err)
	}
	return f.ok("it is healthy")
}

// healthz is kubelet's health endpoint; "" if it has none.
func (v *visit) healthz() (string, error) {
	if v.Healthz != "" {
		return v.Healthz, nil
	}
	config, err := v.kubeletConfig()
	if err != nil {
		return "", err
	}
	return kubelet.Healthz(config), nil
}

func checkCertificate(ctx context.Context, v *visit) *finding {
	k, err := v.kubeconfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failf("berth apply, or berth provision, with a credential that is good", "kubelet has none: %v", err)
	case err != nil:
		return unread("kubelet's certificate", err)
	case len(k.Certificate) == 0:
		return v.tokenInstead(ctx)
	}
	c, err := firstCertificate(k.Certificate)
	if err != nil {
		return failf("berth apply, or berth provision", "kubelet's certificate can't be read: %v", err)
	}
	now := v.Host.Now()
	left, life := c.NotAfter.Sub(now), c.NotAfter.Sub(c.NotBefore)
	until := c.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case now.Before(c.NotBefore):
		return failf("set the machine's clock", "it is good from %s on, and here it is %s", c.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case left <= 0:
		return failf("berth apply, or berth provision, with a bootstrap token that is good", "it ended at %s", until)
	case left < life/10:
		return warnf("journalctl -u kubelet says why it is not renewed: is the request approved?", "it ends at %s, and kubelet has not renewed it", until)
	}
	return okf("of %s, good until %s", c.Subject.CommonName, until)
}

// tokenInstead says of a node without a certificate whether its identity gives it tokens.
func (v *visit) tokenInstead(ctx context.Context) *finding {
	const shows = "kubelet shows the API server no certificate, but a token"
	text, err := v.Host.ReadFile(azureidentity.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), v.Tokens == nil:
		return okf(shows)
	case err != nil:
		return unread("the machine's identity", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachBudget)
	defer cancel()
	a, err := azureidentity.Parse(text)
	if err == nil {
		_, err = v.Tokens(ctx, &a, nil)
	}
	switch {
	case isHidden(err):
		return unread("the token of the machine's identity", err)
	case err != nil:
		return failf(helps(err), "%s of the identity %s, and there is none to be had: %v", shows, a.Kind, err)
	}
	return okf("%s of the identity %s", shows, a.Kind)
}

// nodeBudget is how long the Node is waited for: it is there, or not.
const nodeBudget = 3 * time.Second

func checkNode(ctx context.Context, v *visit) *finding {
	if _, err := v.kubeconfig(); errors.Is(err, fs.ErrPermission) {
		return unread("kubelet's kubeconfig", err)
	}
	at, err := v.healthz()
	if err != nil {
		return unread("where kubelet says how it is", err)
	}
	ctx, cancel := context.WithTimeout(ctx, nodeBudget)
	defer cancel()
	w := apiserver.NodeWatcher{Host: v.Host, Node: v.nodeName(), Kubeconfig: v.kubeconfigPath(), BootstrapKubeconfig: kubelet.Bootstrap,
		Unit: kubelet.Unit, Healthz: at}
	_, err = w.WaitFor(ctx, apiserver.MilestoneReady)
	e, _ := errors.AsType[*apiserver.MilestoneError](err)
	switch {
	case err == nil:
		return okf("%s is Ready", w.Node)
	case e != nil:
		return failf(e.Remedy, "%v", err)
	}
	return unknownf("", "%v", err)
}
