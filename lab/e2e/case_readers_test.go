package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// readers shows generated files to the programs that they are for. That
// containerd reads its hosts.toml and the kubenet template is proved by pods.
func readers(t *testing.T, l *lab.Lab, n *lab.Node) {
	silent(t, n, "systemd-analyze", "verify", "--man=no", "kubelet.service", "containerd.service", "aks-node-controller.service")
	silent(t, n, "sh", "-c", "mkdir -p /run/sshd && sshd -t")
	for _, f := range []string{"/etc/sysctl.d/99-force-bridge-forward.conf", "/etc/sysctl.d/999-sysctl-aks.conf"} {
		// A kernel parameter that a container lacks is ignored; what can't be parsed
		// is not.
		silent(t, n, "sysctl", "--dry-run", "--ignore", "--quiet", "-p", f)
	}
	containerdConfig(t, n)
	kubeletConfig(t, l, n)
	serviceLimits(t, n)
	azureJSON(t, n)
	if out := run(t, n, "kubectl", "--kubeconfig", "/var/lib/kubelet/kubeconfig", "get", "node", n.Name, "-o", "name"); out != "node/"+n.Name+"\n" {
		t.Errorf("kubeconfig: %q", out)
	}
}

// silent runs a command that must succeed and complain of nothing.
func silent(t *testing.T, n *lab.Node, args ...string) {
	t.Helper()
	r, err := n.Exec(within(t, 30*time.Second), args...)
	if err != nil || r.Code != 0 || len(r.Stderr) > 0 {
		t.Errorf("%s: %v, exit code %d\n%s%s", strings.Join(args, " "), err, r.Code, r.Stdout, r.Stderr)
	}
}

// containerdConfig compares what containerd makes of its files.
func containerdConfig(t *testing.T, n *lab.Node) {
	t.Helper()
	dump := run(t, n, "containerd", "config", "dump")
	for _, want := range []string{
		"version = 3", "sandbox = '" + lab.PauseImage + "'", "config_path = '/etc/containerd/certs.d'", "SystemdCgroup = true",
		"bin_dirs = ['/opt/cni/bin']", "conf_dir = '/etc/cni/net.d'", "conf_template = '/etc/containerd/kubenet_template.conf'",
		"restrict_oom_score_adj = true", // from the image's conf.d
	} {
		if !strings.Contains(dump, want) {
			t.Errorf("containerd config dump lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(dump)
	}
}

// kubeletConfig asks kubelet, through the API server, by what it goes.
func kubeletConfig(t *testing.T, l *lab.Lab, n *lab.Node) {
	t.Helper()
	var got struct {
		KubeletConfig map[string]any `json:"kubeletconfig"`
	}
	out := kubectl(t, l, "get", "--raw", "/api/v1/nodes/"+n.Name+"/proxy/configz")
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("configz: %v\n%s", err, out)
	}
	for key, want := range map[string]string{
		"maxPods": `37`, "clusterDomain": `"cluster.local"`, "clusterDNS": `["10.96.0.10"]`, "nodeStatusUpdateFrequency": `"7s"`,
		"failSwapOn": `false`, "rotateCertificates": `true`, "staticPodPath": `"/etc/kubernetes/manifests"`, "address": `"0.0.0.0"`,
		"evictionHard": `{"imagefs.available":"1%","memory.available":"50Mi","nodefs.available":"1%"}`,
		"cgroupDriver": `"systemd"`, "failCgroupV1": `false`, "maxOpenFiles": `20000`, "oomScoreAdj": `0`,
		"runtimeRequestTimeout": `"15m0s"`, "containerRuntimeEndpoint": `"unix:///run/containerd/containerd.sock"`,
	} {
		if b, err := json.Marshal(got.KubeletConfig[key]); err != nil || string(b) != want {
			t.Errorf("configz: %s is %s, want %s (%v)", key, b, want, err)
		}
	}
	auth, err := json.Marshal([]any{got.KubeletConfig["authentication"], got.KubeletConfig["authorization"]})
	if err != nil || !strings.Contains(string(auth), `"anonymous":{"enabled":false}`) || !strings.Contains(string(auth), `"mode":"Webhook"`) ||
		!strings.Contains(string(auth), `"clientCAFile":"/etc/kubernetes/certs/ca.crt"`) {
		t.Errorf("configz: %s, %v", auth, err)
	}
	if out := kubectl(t, l, "get", "--raw", "/api/v1/nodes/"+n.Name+"/proxy/healthz"); out != "ok" {
		t.Errorf("healthz: %q", out)
	}
	labels := kubectl(t, l, "get", "node", n.Name, "-o", "jsonpath={.metadata.labels.agentpool} {.metadata.labels.kubernetes\\.azure\\.com/cluster}")
	if labels != "lab lab" {
		t.Errorf("labels %q", labels)
	}
}

func serviceLimits(t *testing.T, n *lab.Node) {
	t.Helper()
	if out := run(t, n, "systemctl", "show", "-p", "LimitNOFILE", "--value", "containerd.service"); out != "65536\n" {
		t.Errorf("containerd may open %q files", out)
	}
	if out := run(t, n, "systemctl", "show", "-p", "WatchdogUSec", "--value", "kubelet.service"); out != "1min\n" {
		t.Errorf("kubelet's watchdog: %q", out)
	}
}

func azureJSON(t *testing.T, n *lab.Node) {
	t.Helper()
	b, err := n.ReadFile("/etc/kubernetes/azure.json")
	var cloud map[string]any
	if err != nil || json.Unmarshal(b, &cloud) != nil {
		t.Fatalf("azure.json: %v\n%s", err, b)
	}
	for key, want := range map[string]string{"resourceGroup": "MC_lab", "location": "westeurope", "vnetName": "vnet", "routeTableName": "routes"} {
		if cloud[key] != want {
			t.Errorf("azure.json: %s is %v, want %s", key, cloud[key], want)
		}
	}
}

// noCycle proves that units order without a cycle, in this boot and in the next,
// and that no node registered under the name in the image.
func noCycle(t *testing.T, l *lab.Lab, n *lab.Node) {
	verify := []string{"systemd-analyze", "verify", "--man=no", "default.target"}
	if n.Exists("/lib/systemd/system/cloud-init.target") {
		verify = append(verify, "cloud-init.target")
	}
	silent(t, n, verify...)
	for line := range strings.Lines(run(t, n, "journalctl", "-b", "--no-pager")) {
		if strings.Contains(line, "ordering cycle") || strings.Contains(line, "Job deleted to break") {
			t.Error(line)
		}
	}
	if nodes := kubectl(t, l, "get", "nodes", "-o", "name"); strings.Contains(nodes, "node/image\n") {
		t.Errorf("nodes:\n%s", nodes)
	}
}
