package aks

import (
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/component/apicheck"
	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/credentialprovider"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
)

// kubeletFlagsAndConfig is the part of kubelet's settings that other parts ask.
func (t *translation) kubeletFlagsAndConfig() (kubelet.Settings, error) {
	k := t.cfg.GetKubeletConfig()
	s := kubelet.Settings{Version: t.cfg.GetKubernetesVersion(), Flags: k.GetKubeletFlags(),
		Labels: k.GetKubeletNodeLabels(), Rotation: k.GetKubeletConfigFileConfig().GetServerTlsBootstrap()}
	var err error
	if k.GetEnableKubeletConfigFile() && !s.AnotherFile() {
		s.Config, err = kubeletConfiguration(k.GetKubeletConfigFileConfig())
	}
	if err == nil && t.facts.RotationOff {
		return s.WithoutRotation()
	}
	return s, err
}

func (t *translation) kubeletSettings() (kubelet.Settings, error) {
	s, err := t.kubeletFlagsAndConfig()
	if err != nil {
		return s, err
	}
	s.SystemdCgroup = t.systemdCgroup()
	s.Hostname, s.NodeIP = t.facts.Hostname, t.facts.NodeIP
	s.Triggers = t.proxyFiles()
	if t.versioned() {
		s.Program = binaries.Kubelet + "-" + s.Version
	}
	if !t.joins() {
		return s, nil
	}
	s.Variables = t.variables()
	check, err := t.apiCheck()
	if err != nil {
		return s, err
	}
	after := t.add("api_server_config.api_server_name", check)
	if s.Cluster, err = t.cluster(after); err != nil {
		return s, err
	}
	check.Unless, s.After = s.CredentialID(), t.node
	return s, nil
}

// apiCheck: the API server must answer before a machine joins.
func (t *translation) apiCheck() (*desired.Check, error) {
	ca, err := unbase64("kubernetes_ca_cert", t.cfg.GetKubernetesCaCert())
	name := t.cfg.GetApiServerConfig().GetApiServerName()
	return apicheck.Resource(name, string(ca), t.apiBudget(name)), err
}

// cluster is where kubelet goes and what it proves itself with.
func (t *translation) cluster(after []desired.ID) (*kubelet.Cluster, error) {
	ca, err := unbase64("kubernetes_ca_cert", t.cfg.GetKubernetesCaCert())
	if err != nil {
		return nil, err
	}
	api, err := unbase64("api_server_config.api_server_public_key", t.cfg.GetApiServerConfig().GetApiServerPublicKey())
	if err != nil {
		return nil, err
	}
	c := &kubelet.Cluster{Server: apicheck.URL(t.cfg.GetApiServerConfig().GetApiServerName()), CA: ca, APIServer: api}
	c.Credential, err = t.credential()
	c.Credential.After = after
	return c, err
}

// apiBudget: a name may take 5 minutes to resolve, a private link's 10; after
// that the server may take 4 minutes to answer. An address is given 5.
func (t *translation) apiBudget(name string) time.Duration {
	limit := 9 * time.Minute
	switch {
	case isAddress(name):
		limit = 5 * time.Minute
	case strings.Contains(name, ".privatelink."):
		limit = 14 * time.Minute
	}
	return t.budget(13, limit)
}

func (t *translation) credential() (kubelet.Credential, error) {
	c := kubelet.Credential{
		Token:   desired.Secret(t.cfg.GetBootstrappingConfig().GetTlsBootstrappingToken()),
		Timeout: t.budget(2, 2*time.Minute),
	}
	if c.Token != "" {
		return c, nil
	}
	k := t.cfg.GetKubeletConfig()
	key, err := unbase64("kubelet_config.kubelet_client_key", k.GetKubeletClientKey())
	if err != nil {
		return c, err
	}
	c.Key = desired.Secret(key)
	c.Cert, err = unbase64("kubelet_config.kubelet_client_cert_content", k.GetKubeletClientCertContent())
	return c, err
}

// providerFlags are the values of kubelet's flags for the credential provider;
// both or neither.
func (t *translation) providerFlags() (config, dir string, ok bool) {
	flags := t.cfg.GetKubeletConfig().GetKubeletFlags()
	config, dir = flags[credentialprovider.ConfigFlag], flags[credentialprovider.BinFlag]
	return config, dir, config != "" && dir != ""
}

func (t *translation) credentialProvider() error {
	config, dir, ok := t.providerFlags()
	if !ok {
		return nil
	}
	s := credentialprovider.Settings{
		ConfigFile: config, BinDir: dir,
		RegistrySuffix: t.registrySuffix(),
	}
	s.URL, s.Package = t.providerSource()
	if server := t.cfg.GetBootstrapProfileContainerRegistryServer(); server != "" {
		s.Mirror, s.MirrorOf = server, microsoftRegistry
	}
	rs, err := credentialprovider.Resources(s)
	if err != nil {
		return err
	}
	t.node = append(t.node, t.add("kube_binary_config.linux_credential_provider_url", rs...)...)
	return nil
}
