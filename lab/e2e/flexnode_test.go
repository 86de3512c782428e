package e2e

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/lab"
)

// The published program, and its configuration.
const (
	flexPath    = "/usr/local/bin/aks-flex-node"
	flexConfig  = "/etc/aks-flex-node/config.json"
	flexCluster = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/one"
)

// flexToken and flexManaged are identities in the published shape.
var (
	flexToken   = map[string]any{"bootstrapToken": map[string]any{"token": lab.Token}}
	flexManaged = map[string]any{"managedIdentity": map[string]any{"clientId": azureClient}}
)

// flexFiles are what a machine has before it joins under the published name: the
// configuration, with an identity, the network of pods, which an add-on of the cluster brings
// elsewhere, and of kubelet's settings what the published shape has no place for and nspawn
// nodes need.
func flexFiles(t *testing.T, l *lab.Lab, identity map[string]any) map[string]lab.File {
	t.Helper()
	ca, err := l.CA()
	check(t, err)
	cloud := map[string]any{"cloud": "AzurePublicCloud", "targetCluster": map[string]any{"resourceId": flexCluster, "location": "westeurope"}}
	maps.Copy(cloud, identity)
	config := map[string]any{
		"azure":      cloud,
		"agent":      map[string]any{"logLevel": "info"},
		"components": map[string]any{"kubernetes": l.KubernetesVersion(), "sandboxImage": lab.PauseImage},
		"networking": map[string]any{"dnsServiceIP": "10.96.0.10"},
		"node": map[string]any{
			"maxPods": 40, "labels": map[string]any{"example.com/a.b": "edge"},
			"kubelet": map[string]any{"serverURL": "https://" + l.Gateway().String(), "caCertData": ca},
		},
	}
	specifics := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
	check(t, json.Unmarshal([]byte(nodeSpecifics), &specifics))
	files := map[string]lab.File{"/etc/cni/net.d/10-addon.conflist": {Content: []byte(`{"cniVersion": "1.0.0", "name": "addon", "plugins": [{"type": "bridge", "bridge": "addon0", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.250.0/24"}]]}}]}`)}}
	for p, v := range map[string]any{flexConfig: config, "/etc/kubernetes/kubelet.conf.d/50-nspawn.conf": specifics} {
		text, err := json.Marshal(v)
		check(t, err)
		files[p] = lab.File{Content: text, Mode: 0o600}
	}
	return files
}

// flex runs a command under the published name, which must end well.
func flex(t *testing.T, n *lab.Node, args ...string) lab.Result {
	t.Helper()
	r, err := n.Exec(within(t, 2*time.Minute), append([]string{flexPath}, args...)...)
	if err != nil || r.Code != 0 {
		t.Fatalf("%q: %v, exit code %d\n%s%s", args, err, r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// bootstraps makes a machine a node under the published name: its checks are made before,
// and a second bootstrap changes nothing.
func bootstraps(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	r := flex(t, n, "preflight", "--config", flexConfig, "--output", "json", "--ignore-preflight-errors", "cgroups")
	var report struct {
		Status string
		Checks []struct{ Name, Severity, Message string }
	}
	if json.Unmarshal(r.Stdout, &report) != nil || report.Status != "ok" || len(report.Checks) < 20 {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	start := time.Now()
	r = flex(t, n, "bootstrap", "--config", flexConfig)
	said := string(r.Stdout) + string(r.Stderr)
	t.Logf("bootstrap took %.2f s:\n%s", time.Since(start).Seconds(), said)
	node := nodeOf(t, l, n)
	if labels := node.Labels; !ready(node) || labels["kubernetes.azure.com/managed"] != "false" || labels["example.com/a.b"] != "edge" || node.Status.Capacity.Pods().Value() != 40 {
		t.Errorf("%v, %v", labels, node.Status)
	}
	if !strings.Contains(said, "agent.logLevel") || strings.Contains(said, lab.Token) {
		t.Errorf("what has no place is not told, or the token is: %s", said)
	}
	if r = flex(t, n, "start", "--config", flexConfig); !strings.Contains(string(r.Stdout)+string(r.Stderr), "no changes") {
		t.Errorf("a second time: %s%s", r.Stdout, r.Stderr)
	}
}

// unbootstraps gives the machine back as it was; what stays in the cluster is named.
func unbootstraps(t *testing.T, n *lab.Node, before asItIs) {
	t.Helper()
	start := time.Now()
	r := flex(t, n, "unbootstrap", "--config", flexConfig)
	said := string(r.Stdout) + string(r.Stderr)
	t.Logf("unbootstrap took %.2f s:\n%s", time.Since(start).Seconds(), said)
	if !strings.Contains(said, "kubectl delete node "+n.Name) {
		t.Errorf("the Node is not named: %s", said)
	}
	if diff := cmp.Diff(before, look(t, n, "/var/lib/containerd")); diff != "" {
		t.Error(diff)
	}
	if r := flex(t, n, "reset"); !strings.Contains(string(r.Stdout)+string(r.Stderr), "nothing to do") {
		t.Errorf("a second time: %s%s", r.Stdout, r.Stderr)
	}
}
