package kubelet

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
)

// nodeObject is what the Node says of the contract's labels and taints once there
// is one; nil where kubelet does not register.
func (s Settings) nodeObject() desired.Resource {
	if !s.registers() {
		return nil
	}
	return &desired.NodeObject{
		Name: s.nodeName(), Kubeconfig: s.kubeconfig(), Unit: Unit, Labels: s.allLabels(), Taints: s.taints(),
	}
}

func (s Settings) registers() bool {
	on, err := strconv.ParseBool(s.setting("--register-node", "registerNode"))
	return err != nil || on
}

// allLabels are the labels of both flags: kubelet adds up what --node-labels says
// each time (ConfigurationMap.Set, k8s.io/component-base/cli/flag).
func (s Settings) allLabels() map[string]string {
	out := map[string]string{}
	maps.Copy(out, s.labels())
	for one := range strings.SplitSeq(s.effectiveFlags()["--node-labels"], ",") {
		key, value, _ := strings.Cut(one, "=")
		if key = strings.TrimSpace(key); key != "" {
			out[key] = strings.TrimSpace(value)
		}
	}
	return out
}

// taints are those of the flag, else those of the configuration file.
func (s Settings) taints() []desired.Taint {
	if text, ok := s.effectiveFlags()["--register-with-taints"]; ok {
		out, _ := desired.ParseTaints(text)
		return out
	}
	var given struct {
		Taints []desired.Taint `json:"registerWithTaints"`
	}
	if s.Config == nil || json.Unmarshal(s.Config, &given) != nil {
		return nil
	}
	return given.Taints
}
