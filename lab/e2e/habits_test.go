package e2e

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// habitual is a configuration with what working clients are used to: flags with
// underscores and by their short names, slashes at the end, names that Go has
// renamed, a time that is too long, a cgroup without its slash, a CA on a curve
// that Go does not read, empty items of lists, and a network without names.
func habitual(ca []byte) func(*aksnodeconfigv1.Configuration) {
	return func(c *aksnodeconfigv1.Configuration) {
		c.CseTimeout = proto.Int32(30000)
		c.CustomCaCerts = []string{base64.StdEncoding.EncodeToString(ca), ""}
		c.ClusterConfig.ClusterNetworkConfig.VnetName, c.ClusterConfig.ClusterNetworkConfig.RouteTable = "", ""
		k := c.KubeletConfig
		k.ContainerDataDir = "/var/lib/containerd/"
		k.KubeletFlags["--node_labels"] = "habit=underscore"
		k.KubeletFlags["-v"] = "3"
		k.KubeletFlags["--cert-dir"] = "/var/lib/kubelet/pki/"
		k.EnableKubeletConfigFile = true
		k.KubeletConfigFileConfig = &aksnodeconfigv1.KubeletConfigFileConfig{
			TlsCipherSuites: []string{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
				"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", ""},
			ClusterDns: []string{"10.96.0.10", "", " "}, KubeReservedCgroup: "kubereserved.slice",
		}
	}
}

// TestHabitsToReady: all of them at once make a Ready node, on which each counts as
// its client means it.
func TestHabitsToReady(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	ca, err := os.ReadFile("../../internal/contract/aks/decode/testdata/secp256k1.pem")
	if err != nil {
		t.Fatal(err)
	}
	n := addNode(t, l, lab.NodeConfig{Name: "habits", UserData: customData(t, nodeConfig(t, l, habitual(ca)))})
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	node, err := l.Client().CoreV1().Nodes().Get(within(t, 10*time.Second), n.Name, metav1.GetOptions{})
	if err != nil || node.Labels["habit"] != "underscore" || node.Labels["agentpool"] != "lab" {
		t.Errorf("labels %v, %v", node.Labels, err)
	}
	if bundle := read(t, n, "/etc/ssl/certs/ca-certificates.crt"); !strings.Contains(bundle, strings.TrimSpace(string(ca))) {
		t.Error("the CA is not in the bundle")
	}
	for _, unit := range []string{"kubelet", "containerd"} {
		if got := run(t, n, "systemctl", "show", "-p", "ControlGroup", unit); !strings.HasPrefix(got, "ControlGroup=/kubereserved.slice/") {
			t.Errorf("%s: %s", unit, got)
		}
	}
	arguments := run(t, n, "sh", "-c", `tr '\0' '\n' </proc/$(systemctl show -p MainPID --value kubelet)/cmdline`)
	if !containsAll(arguments, "--v=3\n", "habit=underscore", "--cert-dir=/var/lib/kubelet/pki\n") {
		t.Errorf("kubelet runs with\n%s", arguments)
	}
	if log := read(t, n, "/var/log/azure/aks-node-controller.log"); !containsAll(log, "kubelet_config.kubelet_config_file_config.cluster_dns[1]", "cse_timeout") {
		t.Errorf("the log names no habit:\n%s", log)
	}
	planIsEmpty(t, l, n)
}
