package e2e

import (
	"context"
	"encoding/base64"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/e2e/setup"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// TestCaseCustomData follows one node from multipart CustomData to its reboot
// and its captured image. Later parts meet the node as earlier ones left it:
// converged.
func TestCaseCustomData(t *testing.T) {
	parallelLong(t)
	l := sharedLab(t)
	reg := serveImages(t, l)
	m := serveMirror(t, l, reg)
	cfg := nodeConfig(t, l, everyKind(m))
	n := addNode(t, l, lab.NodeConfig{Name: "case-one", UserData: customData(t, cfg), Files: reg.trust()})
	status := runCSE(t, n)
	if _, err := l.WaitNodeReady(within(t, time.Minute), n.Name); err != nil {
		t.Fatal(err)
	}
	checkStatus(t, status())
	checkWorkload(t, l, reg, reg.workload, "one-pod", n)
	checkWorkload(t, l, reg, mirrored, "mirrored-pod", n)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *lab.Lab, *lab.Node)
	}{
		{"plan is empty", planIsEmpty}, {"readers", readers}, {"no cycle", noCycle}, {"mutations", mutations},
		{"reboot", rebootKeeps}, {"power loss", crashKeeps},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, l, n) })
	}
	t.Run("captured image", func(t *testing.T) { capturedImage(t, l, n, cfg, reg) })
	t.Run("captured image, late", func(t *testing.T) { capturedLate(t, l, n, cfg, reg) })
}

// everyKind makes a configuration with a resource of every kind that a node of
// the lab can have.
func everyKind(m *mirror) func(*aksnodeconfigv1.Configuration) {
	return func(c *aksnodeconfigv1.Configuration) {
		backlog, files := int32(8192), "65536"
		c.CustomCaCerts = []string{base64.StdEncoding.EncodeToString(m.ca)}
		c.BootstrapProfileContainerRegistryServer = m.server
		c.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{
			SysctlConfig: &aksnodeconfigv1.SysctlConfig{NetIpv4TcpMaxSynBacklog: &backlog},
			UlimitConfig: &aksnodeconfigv1.UlimitConfig{NoFile: &files},
		}
		c.KubeletConfig.EnableKubeletConfigFile = true
		c.KubeletConfig.KubeletConfigFileConfig = kubeletFile(c.KubeletConfig.KubeletFlags)
	}
}

// kubeletFile moves what can stand in the configuration file there.
func kubeletFile(flags map[string]string) *aksnodeconfigv1.KubeletConfigFileConfig {
	for f := range flags {
		switch f {
		case "--fail-cgroupv1", "--max-open-files", "--oom-score-adj", "--cgroup-driver":
		default:
			delete(flags, f)
		}
	}
	pods, swap := int32(37), false
	return &aksnodeconfigv1.KubeletConfigFileConfig{
		Kind: "KubeletConfiguration", ApiVersion: "kubelet.config.k8s.io/v1beta1",
		StaticPodPath: "/etc/kubernetes/manifests", Address: "0.0.0.0", RotateCertificates: true,
		ClusterDomain: "cluster.local", ClusterDns: []string{"10.96.0.10"},
		MaxPods: &pods, FailSwapOn: &swap, NodeStatusUpdateFrequency: "7s",
		EvictionHard: map[string]string{"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
		Authentication: &aksnodeconfigv1.KubeletAuthentication{
			X509:      &aksnodeconfigv1.KubeletX509Authentication{ClientCaFile: "/etc/kubernetes/certs/ca.crt"},
			Webhook:   &aksnodeconfigv1.KubeletWebhookAuthentication{Enabled: true},
			Anonymous: &aksnodeconfigv1.KubeletAnonymousAuthentication{},
		},
		Authorization: &aksnodeconfigv1.KubeletAuthorization{Mode: "Webhook"},
	}
}

// runCSE runs the client's command as the extension does, while the node boots.
// The function that it returns waits for the end.
func runCSE(t *testing.T, n *lab.Node) func() setup.Extension {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	done := make(chan setup.Extension, 1)
	go func() {
		message, code, err := n.RunExtension(ctx, nodeconfigutils.CSE)
		done <- setup.Extension{Message: message, Code: code, Err: err}
	}()
	return func() setup.Extension { return <-done }
}

// run runs a command in a node that must succeed and returns what it prints.
func run(t *testing.T, n *lab.Node, args ...string) string {
	t.Helper()
	out, err := n.Output(within(t, time.Minute), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
