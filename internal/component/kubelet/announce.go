package kubelet

import (
	"encoding/json"
	"maps"
	"runtime"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// What kubelet 1.27 and later registers with, from its initialNode: default
// labels, the contract's labels and taints, the taint of an external cloud
// provider, and two annotations.
const (
	uninitialized  = "node.cloudprovider.kubernetes.io/uninitialized"
	attachDetach   = "volumes.kubernetes.io/controller-managed-attach-detach"
	providedNodeIP = "alpha.kubernetes.io/provided-node-ip"
)

// shaping are the flags that shape a Node in ways that announce does not know.
var shaping = []string{configFileFlag, "--node-labels", "--provider-id", "--register-node", "--register-schedulable", "--enable-controller-attach-detach"}

// announce is the Node that kubelet would register; nil where that can't be said
// for certain. A Node that differs would stay so: kubelet does not correct labels
// and taints of a Node that it finds.
func (s Settings) announce() *desired.Node {
	flags := s.effectiveFlags()
	for _, f := range shaping {
		if _, ok := flags[f]; ok {
			return nil
		}
	}
	if s.shapedByConfig() {
		return nil
	}
	taints, ok := desired.ParseTaints(flags["--register-with-taints"])
	if !ok {
		return nil
	}
	n := &desired.Node{Labels: s.registeredLabels(), Annotations: map[string]string{attachDetach: "true"}, Taints: taints}
	if s.readsConfigDir() {
		n.Unless = ConfigDir
	}
	if dir := flags["--config-dir"]; dir != "" {
		n.Unless = dir
	}
	switch flags["--cloud-provider"] {
	case "":
	case "external":
		n.Taints = append(n.Taints, desired.Taint{Key: uninitialized, Value: "true", Effect: "NoSchedule"})
		if ip := flags["--node-ip"]; ip != "" {
			n.Annotations[providedNodeIP] = strings.ReplaceAll(ip, " ", "")
		}
	default:
		return nil
	}
	return n
}

// shapedByConfig says whether the configuration file has a say in registration.
func (s Settings) shapedByConfig() bool {
	if s.Config == nil {
		return false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(s.Config, &fields) != nil {
		return true
	}
	for _, f := range []string{"registerWithTaints", "registerNode", "providerID", "enableControllerAttachDetach"} {
		if _, ok := fields[f]; ok {
			return true
		}
	}
	return false
}

func (s Settings) registeredLabels() map[string]string {
	out := map[string]string{
		"beta.kubernetes.io/arch": runtime.GOARCH,
		"beta.kubernetes.io/os":   runtime.GOOS,
		"kubernetes.io/arch":      runtime.GOARCH,
		"kubernetes.io/hostname":  s.nodeName(),
		"kubernetes.io/os":        runtime.GOOS,
	}
	maps.Copy(out, s.labels())
	return out
}
