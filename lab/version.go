package lab

import "strings"

// KubernetesVersion is the version of the control plane and of the nodes'
// kubelet, without the leading v.
func (l *Lab) KubernetesVersion() string { return strings.TrimPrefix(l.plane.Version(), "v") }
