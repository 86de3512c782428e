package agent

import (
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/credential"
	"github.com/berth-dev/berth/internal/host/memory"
)

// kubelet's first credential stays until kubelet has spoken in this boot: a Node of
// the same name may be another machine's.
func TestFirstCredentialStaysForKubelet(t *testing.T) {
	h := memory.New()
	h.Put(bootID, "this-boot\n", 0o444)
	for _, p := range []string{credential.KubeletBootstrap, config.BootstrapToken} {
		h.Put(p, "x", 0o600)
	}
	n := &node{name: "n1"}
	a := &Agent{Settings: Settings{Host: h}, node: n, keeper: &credential.Keeper{Host: h}}
	for _, boot := range []string{"", "that-boot", "this-boot"} {
		n.latest.Set(&core.Node{Status: core.NodeStatus{NodeInfo: core.NodeSystemInfo{BootID: boot}}})
		if err := a.joined(); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{credential.KubeletBootstrap, config.BootstrapToken} {
			if _, err := h.Lstat(p); (err != nil) != (boot == "this-boot") {
				t.Errorf("the Node is of boot %q: %s: %v", boot, p, err)
			}
		}
	}
}

// A document in a file may come beside the one that brings kubelet's credentials: where
// there is another source it takes nothing away.
func TestFirstCredentialStaysForTheOtherDocument(t *testing.T) {
	for text, gone := range map[string]bool{
		"sources: {aksNodeConfig: /aks}\n":                                             false,
		"sources: {secret: false, operatingSystemConfig: /osc, aksNodeConfig: /aks}\n": false,
		"sources: {secret: false, aksNodeConfig: /aks}\n":                              true,
		"sources: {secret: false, nodeConfig: /node}\n":                                true,
		"sources: {nodeConfig: /node}\n":                                               false,
		"sources: {secret: false, aksNodeConfig: /aks, nodeConfig: /node}\n":           false,
	} {
		h := machineWith(configText)
		h.Put(config.OptionsPath, text, 0o600)
		h.Put(bootID, "this-boot\n", 0o444)
		h.Put(config.BootstrapToken, "x", 0o600)
		a, err := New(settingsOf(h))
		if err != nil {
			t.Fatal(err)
		}
		a.keeper = &credential.Keeper{Host: h}
		a.node.latest.Set(&core.Node{Status: core.NodeStatus{NodeInfo: core.NodeSystemInfo{BootID: "this-boot"}}})
		if err := a.joinedByFile(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Lstat(config.BootstrapToken); (err != nil) != gone {
			t.Errorf("%q: %v", text, err)
		}
	}
}
