package e2e

import (
	"compress/gzip"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// isolatedPause is of a registry that the lab does not have.
const isolatedPause = "mcr.microsoft.com/oss/kubernetes/pause:3.10"

// isolate makes a node one of a cluster without a way out: its registry has the
// image of the sandbox, and asks who pulls.
func (s *privateSite) isolate(image string) func(*aksnodeconfigv1.Configuration) {
	return func(c *aksnodeconfigv1.Configuration) {
		s.identify(c)
		c.BootstrapProfileContainerRegistryServer = s.registryName + "/aks"
		c.KubeBinaryConfig.PodInfraContainerImageUrl = image
	}
}

// fillIsolated pushes what such a cluster's registry has, at the published paths.
func (s *privateSite) fillIsolated(t *testing.T) {
	t.Helper()
	program := s.lab.PauseArchive()
	program = program[:strings.LastIndexByte(program, '/')] + "/pause"
	if _, err := s.held.Push(within(t, time.Minute), "aks/oss/kubernetes/pause:3.10", serve.StaticImage("pause", program)); err != nil {
		t.Fatal(err)
	}
	provider := filepath.Join(t.TempDir(), "provider.tar.gz")
	if _, err := serve.WriteTarGz(provider, gzip.BestSpeed, serve.Entry{Name: "azure-acr-credential-provider", Data: []byte("#!/bin/sh\necho out of the registry\n"), Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	tag := ":v" + strings.TrimPrefix(s.lab.KubernetesVersion(), "v") + "-linux-" + runtime.GOARCH
	for name, file := range map[string]string{"kubernetes-node": s.archive, "azure-acr-credential-provider": provider} {
		if _, err := s.held.PushFile(within(t, time.Minute), "aks/oss/binaries/kubernetes/"+name+tag, "application/vnd.lab.program", "application/gzip", file); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCaseIsolated: kubelet and the credential provider come out of the cluster's own
// registry where the image lacks them and the document names no address. kubelet is
// not started before the image of the sandbox came from there. That is pinned, and is
// not pulled where it is.
func TestCaseIsolated(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg, s := serveImages(t, l), serveSite(t, l)
	s.fillIsolated(t)
	n := addNode(t, l, lab.NodeConfig{Name: "case-isolated", Files: reg.trust()})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	s.reachesNode(t, n)
	m := &badMachine{l, n}
	t.Run("refused", func(t *testing.T) { s.refusesSandbox(t, m) })
	s.forget()
	run(t, n, "rm", "/opt/bin/kubelet")
	if r := m.provision(t, badCase{name: "good", config: m.document(t, s.isolate(isolatedPause), provides), within: time.Minute}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if _, err := l.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	checkPinned(t, n)
	if got := run(t, n, providerDir+"/acr-credential-provider"); got != "out of the registry\n" {
		t.Errorf("the credential provider says %q", got)
	}
	if s.tokens() != 1 {
		t.Errorf("%d tokens of the identity", s.tokens())
	}
	checkWorkload(t, l, reg, reg.workload, "isolated-pod", n)
	if !n.Exists("/opt/azure/outbound-check-skipped") {
		t.Error("/opt/azure/outbound-check-skipped is missing")
	}
	s.forget()
	planIsEmpty(t, l, n)
	label(t, n, "")
	run(t, n, berthPath, "apply", "-f", configPath)
	checkPinned(t, n)
	if got := s.registry.Requests(); len(got) > 0 {
		t.Errorf("to pin what is there cost %d requests", len(got))
	}
	run(t, n, "ctr", "-n", "k8s.io", "images", "rm", isolatedPause)
	run(t, n, berthPath, "apply", "-f", configPath)
	checkPinned(t, n)
	planIsEmpty(t, l, n)
}

// refusesSandbox are pulls that fail: kubelet does not start.
func (s *privateSite) refusesSandbox(t *testing.T, m *badMachine) {
	const field = "kube_binary_config.pod_infra_container_image_url"
	for _, c := range []badCase{
		{name: "no such tag", code: 233, field: field, says: []string{s.registryName + "/aks/oss/kubernetes/pause", "404"}, hint: "repository and tag",
			within: 20 * time.Second, // the first run here also has the distribution build its CA bundle
			config: m.document(t, s.isolate(isolatedPause+"-not"))},
		{name: "no role", code: 212, field: field, says: []string{s.registryName, "401"}, hint: "AcrPull",
			config: m.document(t, s.isolate(isolatedPause), as(strangeClient))},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, m, m.provision(t, c))
			if out := string(m.exec(t, "systemctl", "is-active", "kubelet.service").Stdout); strings.TrimSpace(out) != "inactive" {
				t.Errorf("kubelet is %s", out)
			}
		})
	}
}

// label sets what kubelet's garbage collection looks for.
func label(t *testing.T, n *lab.Node, value string) {
	t.Helper()
	run(t, n, "ctr", "-n", "k8s.io", "images", "label", isolatedPause, "io.cri-containerd.pinned="+value)
}

func checkPinned(t *testing.T, n *lab.Node) {
	t.Helper()
	out := run(t, n, "ctr", "-n", "k8s.io", "images", "ls", "name=="+isolatedPause)
	if !containsAll(out, isolatedPause, "io.cri-containerd.image=managed", "io.cri-containerd.pinned=pinned") {
		t.Errorf("the image is not pinned:\n%s", out)
	}
}
