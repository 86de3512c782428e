package aks

import (
	"errors"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// What no rule of the validation finds is the document's error all the same, and the
// error says in which field.
func TestPathsInEachOthersWay(t *testing.T) {
	for flag, path := range map[string]string{
		"--kubeconfig":                       "/etc/default/kubelet",
		"--bootstrap-kubeconfig":             "/var/lib/kubelet/kubeconfig",
		"--cert-dir":                         "/etc/default/kubelet",
		"--image-credential-provider-config": "/etc/kubernetes/azure.json",
		"--tls-cert-file":                    "/etc/kubernetes/certs/ca.crt",
	} {
		cfg := sample(t, "minimal.json")
		cfg.KubeletConfig = &aksnodeconfigv1.KubeletConfig{KubeletFlags: map[string]string{
			flag: path, "--image-credential-provider-bin-dir": "/opt/p", "--tls-private-key-file": "/etc/x.key",
		}}
		_, err := Translate(&Document{Config: cfg}, machine)
		refused, ok := errors.AsType[*DocumentError](err)
		if !ok || refused.Code != 240 || refused.Errors[0].Field != "kubelet_config.kubelet_flags["+flag+"]" {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
