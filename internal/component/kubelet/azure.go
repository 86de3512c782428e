package kubelet

import (
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
)

// azureBootstrap: the identity stands in the bootstrap kubeconfig alone. kubelet works
// with a certificate of the Node's own, so that the Node authorizer and NodeRestriction
// hold; where that has ended, the identity brings the next one.
func azureBootstrap(s Settings, want *desired.ClientCertificate, flags []string) ([]desired.Resource, error) {
	flags = append(flags, s.renewal()...)
	if !azureidentity.Lasting(s.Cluster.Credential.Azure) {
		return []desired.Resource{want, dropIn("10-tlsbootstrap.conf", bootstrapFlags, flags...)}, nil
	}
	identity, err := azureidentity.Marshal(*s.Cluster.Credential.Azure)
	if err != nil {
		return nil, err
	}
	text, err := kubeconfig(s.Cluster.Server, clientcmdv1.AuthInfo{Exec: &clientcmdv1.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: s.Cluster.Credential.Program, Args: []string{"node", "token"}, // the program may have a published name
		InteractiveMode: clientcmdv1.NeverExecInteractiveMode,
	}})
	if err != nil {
		return nil, err
	}
	flags = append(flags, "--bootstrap-kubeconfig="+s.bootstrap())
	return []desired.Resource{
		want,
		&desired.File{Path: azureidentity.Path, Content: desired.SecretBytes(identity), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: s.bootstrap(), Content: desired.Bytes(text), Mode: 0o600, Life: desired.Managed},
		dropIn("10-tlsbootstrap.conf", bootstrapFlags, flags...),
	}, nil
}
