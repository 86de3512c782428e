package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/internal/component/kubelet"
)

// kubeconfigOf is a kubelet's credential for a Node.
func kubeconfigOf(node string) string {
	return `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: k, cluster: {server: "https://10.0.0.1:6443"}}]
contexts: [{name: c, context: {cluster: k, user: "system:node:` + node + `"}}]
users: [{name: "system:node:` + node + `", user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /berth, interactiveMode: Never}}}]
`
}

// TestNodeName: the Node is called as kubelet's credential says, which may come after the
// agent, and else as the host. An agent that went by another name starts anew.
func TestNodeName(t *testing.T) {
	for name, c := range map[string]struct{ first, at, then string }{
		"that can't be read any more":    {"x", kubelet.Kubeconfig, ""},
		"at a path that a flag names":    {"n1", "/etc/k", "x"},
		"of a host":                      {"n1", "", ""},
		"of a document":                  {"x", kubelet.Kubeconfig, "x"},
		"of a manager's document":        {"x", kubelet.AgentKubeconfig, "x"},
		"that comes after the agent":     {"n1", kubelet.Kubeconfig, "x"},
		"that is the host's, afterwards": {"n1", kubelet.Kubeconfig, "n1"},
		"that is another one later":      {"x", kubelet.Kubeconfig, "y"},
	} {
		t.Run(name, func(t *testing.T) {
			h := machineWith(configText)
			h.PutDir("/var/lib/kubelet")
			h.PutDir(kubelet.DropInDir)
			if c.first != "n1" {
				h.Put(c.at, kubeconfigOf(c.first), 0o600)
			}
			a := begin(t, h)
			if a.node.name != c.first || a.host != "n1" {
				t.Errorf("Node %s of host %s", a.node.name, a.host)
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- a.watchNodeName(ctx) }()
				synctest.Wait()
				if c.at == "/etc/k" {
					h.Put(kubelet.DropInDir+"/50-x.conf", "[Service]\nEnvironment=X=--kubeconfig=/etc/k\n", 0o644)
					synctest.Wait()
				}
				switch {
				case c.at != "" && c.then == "":
					h.Overwrite(c.at, "half")
				case c.at != "":
					h.Put(c.at, kubeconfigOf(c.then), 0o600)
				}
				synctest.Wait()
				ended := len(done) == 1 && errors.Is(<-done, errRestart)
				if want := c.then != "" && c.then != c.first; ended != want {
					t.Errorf("started anew: %v", ended)
				}
			})
		})
	}
}
