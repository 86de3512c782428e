package kubelet

import (
	"encoding/json"
	"fmt"
	"maps"
)

// RotationOffVariable stands in the flags file where a tag of the virtual machine
// takes the serving certificate out of the cluster's hands: a run that can't ask
// for the tags keeps to it.
const RotationOffVariable = "KUBELET_SERVING_ROTATION_OFF"

// FromPackagesVariable stands there where a tag has the programs come from the image's
// packages.
const FromPackagesVariable = "KUBELET_FROM_PACKAGES"

// RotationFlag has kubelet ask the cluster for its serving certificate.
const RotationFlag = "--rotate-server-certificates"

const (
	rotationKey     = "serverTLSBootstrap"
	servingCALabel  = "kubernetes.azure.com/kubelet-serving-ca"
	rotationByLabel = "cluster"
)

// WithoutRotation is a kubelet that serves with a pair of its own, whatever flags,
// configuration and labels of the contract say.
func (s Settings) WithoutRotation() (Settings, error) {
	s.Rotation = false
	if _, ok := s.Flags[RotationFlag]; ok {
		s.Flags = maps.Clone(s.Flags)
		s.Flags[RotationFlag] = "false"
	}
	s.Labels = maps.Clone(s.Labels)
	maps.DeleteFunc(s.Labels, func(k, v string) bool { return k == servingCALabel && v == rotationByLabel })
	if s.Config == nil {
		return s, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(s.Config, &given); err != nil {
		return s, fmt.Errorf("read kubelet configuration: %w", err)
	}
	delete(given, rotationKey)
	var err error
	s.Config, err = json.Marshal(given)
	return s, err
}
