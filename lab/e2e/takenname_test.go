package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
)

// TestNameOfAnotherMachine: a machine that joins under the name of a node that runs is
// refused as it is, by either contract, and the node stays Ready. When that one is switched
// off, the name is free.
func TestNameOfAnotherMachine(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	first := addNode(t, l, lab.NodeConfig{Name: "name-first", UserData: customData(t, nodeConfig(t, l))})
	second := machineOf(t, l, "name-second", lab.Prebaked, nodeConfig(t, l), tokenAndCA(t, l))
	was, err := l.WaitNodeReady(within(t, 90*time.Second), first.Name)
	check(t, err)
	skip := []string{"/var/lib/berth", "/var/lib/containerd", "/var/log/azure", "/opt/azure", "/etc/berth", configPath}
	before := look(t, second, skip...)

	run(t, second, "hostname", first.Name)
	p, err := second.Exec(within(t, 2*time.Minute), controllerPath, "provision", "--provision-config", configPath)
	run(t, second, "hostname", second.Name)
	if result := run(t, second, "cat", resultPath); err != nil || p.Code != 252 || !strings.Contains(result, "another machine is Node "+first.Name) {
		t.Errorf("provision: %v, exit code %d\n%s%s", err, p.Code, p.Stderr, result)
	}

	text := ownDocument(t, l, func(c *v1alpha1.NodeConfig) { c.Node.Name = first.Name })
	check(t, second.WriteFile(configPath, text, 0o600))
	start := time.Now()
	r, said := joinCommand(t, second)
	t.Logf("refused after %.2f s: %+v", time.Since(start).Seconds(), r.Failure)
	if r.ExitCode != 1 || r.Failure.Name != "ERR_CLIENT_CERTIFICATE" || !strings.Contains(r.Failure.Cause, first.IP.String()) || !strings.Contains(r.Failure.Hint, "kubectl delete node "+first.Name) {
		t.Errorf("%+v\n%s", r, said)
	}
	if diff := cmp.Diff(before, look(t, second, skip...)); diff != "" {
		t.Errorf("the machine that was refused:\n%s", diff)
	}
	if now := nodeOf(t, l, first); now.UID != was.UID || now.Status.NodeInfo.BootID != was.Status.NodeInfo.BootID || !ready(now) {
		t.Errorf("the node is %+v, was %+v", now.Status, was.Status)
	}

	check(t, first.Stop(within(t, time.Minute)))
	start = time.Now()
	r, said = joinCommand(t, second)
	t.Logf("joined after %.2f s\n%s", time.Since(start).Seconds(), said)
	if r.ExitCode != 0 || r.Milestone != "ready" || r.Node != first.Name {
		t.Fatalf("%+v\n%s", r, said)
	}
	_, err = l.WaitNode(within(t, time.Minute), first.Name, func(n *corev1.Node) bool {
		return ready(n) && n.UID == was.UID && n.Status.NodeInfo.MachineID != was.Status.NodeInfo.MachineID
	})
	check(t, err)
	if r, said = joinCommand(t, second); r.ExitCode != 0 || r.Changes != 0 {
		t.Errorf("second join: %+v\n%s", r, said)
	}
}
