package kubelet

import (
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// TokenScript is where AKS Flex Node has the program that prints tokens.
const TokenScript = "/var/lib/kubelet/token.sh"

// plugin has berth print tokens; the program may have a published name.
func (c *Credential) plugin() clientcmdv1.AuthInfo {
	return clientcmdv1.AuthInfo{Exec: &clientcmdv1.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: c.Program, Args: []string{"node", "token"},
		InteractiveMode: clientcmdv1.NeverExecInteractiveMode,
	}}
}

// azureDirect: kubelet shows the tokens of the identity, which is no Node's own: the
// kubeconfig names the Node that it is used for.
func azureDirect(s Settings) ([]desired.Resource, error) {
	c := &s.Cluster.Credential
	identity, err := azureidentity.Marshal(*c.Azure)
	if err != nil {
		return nil, err
	}
	text, err := kubeconfigOf("system:node:"+s.nodeName(), s.Cluster.Server, c.plugin())
	if err != nil {
		return nil, err
	}
	script := "#!/bin/sh\nexec " + unitfile.Word(c.Program) + " node token\n"
	return []desired.Resource{
		&desired.File{Path: azureidentity.Path, Content: desired.SecretBytes(identity), Mode: 0o600, Life: desired.Managed},
		&desired.File{Base: desired.Base{After: c.After}, Path: s.kubeconfig(), Content: desired.Bytes(text), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: TokenScript, Content: desired.Text(script), Mode: 0o700, Life: desired.Managed},
		dropIn("10-tlsbootstrap.conf", bootstrapFlags, "--kubeconfig="+s.kubeconfig()),
	}, nil
}

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
	text, err := kubeconfig(s.Cluster.Server, s.Cluster.Credential.plugin())
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
