package aks

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component/apicheck"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/binaries"
	"github.com/berth-dev/berth/internal/component/credentialprovider"
	"github.com/berth-dev/berth/internal/component/gates"
	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/securebootstrap"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/contract/value"
	"github.com/berth-dev/berth/internal/desired"
)

// kubeletFlagsAndConfig is the part of kubelet's settings that other parts ask.
func (t *translation) kubeletFlagsAndConfig() (kubelet.Settings, error) {
	k := t.cfg.GetKubeletConfig()
	s := kubelet.Settings{Version: t.cfg.GetKubernetesVersion(), Flags: k.GetKubeletFlags(),
		Labels: k.GetKubeletNodeLabels(), Rotation: k.GetKubeletConfigFileConfig().GetServerTlsBootstrap()}
	s.Labels = t.withOwnLabels(s.Labels)
	var err error
	if k.GetEnableKubeletConfigFile() && !s.AnotherFile() {
		s.Config, err = kubeletConfiguration(k.GetKubeletConfigFileConfig())
	}
	if err == nil && t.facts.RotationOff {
		return s.WithoutRotation()
	}
	return s, err
}

// nodeName refuses what the machine gives where no flag names the Node, and no Node can have.
func nodeName(name string) error {
	if value.NodeName(name) == "" {
		return nil
	}
	at := field.NewPath("kubelet_config", "kubelet_flags").Key("--hostname-override")
	return &DocumentError{Code: decode.CodeRefused, Errors: []FieldError{{Error: &field.Error{
		Type: field.ErrorTypeInvalid, Field: at.String(), BadValue: field.OmitValueType{}, Detail: value.HostName(name)}}}}
}

// withOwnLabels adds the labels that tell who looks for figures of the node what it has.
func (t *translation) withOwnLabels(labels map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, labels)
	if servesGPUs(t) {
		all[gpu.Label] = gpu.LabelSwitch
	}
	if exportsLocalDNS(t) {
		all[imageunits.ExporterLabel] = imageunits.ExporterSwitch
	}
	return all
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
	if err := nodeName(s.NodeName()); err != nil {
		return s, err
	}
	s.Variables = t.variables()
	check, err := t.apiCheck()
	if err != nil {
		return s, err
	}
	outbound := t.outbound()
	after := t.add("api_server_config.api_server_name", check)
	if s.Cluster, err = t.cluster(after); err != nil {
		return s, err
	}
	check.Unless, s.After = s.CredentialID(), t.node
	if outbound != nil {
		outbound.Unless = s.CredentialID()
	}
	return s, nil
}

// outbound is the check that a machine has a way out before it joins. One that has
// joined needs none for another run.
func (t *translation) outbound() *desired.Check {
	if !proves(t) || mirrored(t) {
		return nil
	}
	c := apicheck.Outbound(strings.Fields(t.cfg.GetOutboundCommand()), t.budget(6, 320*time.Second))
	t.add("outbound_command", c)
	return c
}

// apiCheck: the API server must answer before a machine joins.
func (t *translation) apiCheck() (*desired.Check, error) {
	ca, err := unbase64("kubernetes_ca_cert", t.cfg.GetKubernetesCaCert())
	name := t.cfg.GetApiServerConfig().GetApiServerName()
	c := apicheck.Resource(name, string(ca), t.apiBudget(name))
	c.Address = t.privateAddress()
	return c, err
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
	if c.Credential.Elsewhere {
		t.attest(after, c.Credential.Timeout)
	}
	return c, err
}

// attest has the cloud's own program obtain the certificate, once the API server
// answers.
func (t *translation) attest(after []desired.ID, timeout time.Duration) {
	b := t.cfg.GetBootstrappingConfig()
	s := securebootstrap.Settings{
		Server: t.cfg.GetApiServerConfig().GetApiServerName(), Resource: b.GetSecureTlsBootstrappingAadResource(),
		ClientID: b.GetSecureTlsBootstrappingUserAssignedIdentityId(),
		URL:      artifactURL(b.GetSecureTlsBootstrappingCustomClientDownloadUrl()),
		Timeouts: map[string]string{
			"validate-kubeconfig-timeout": b.GetSecureTlsBootstrappingValidateKubeconfigTimeout(),
			"get-access-token-timeout":    b.GetSecureTlsBootstrappingGetAccessTokenTimeout(),
			"get-instance-data-timeout":   b.GetSecureTlsBootstrappingGetInstanceDataTimeout(),
			"get-nonce-timeout":           b.GetSecureTlsBootstrappingGetNonceTimeout(),
			"get-attested-data-timeout":   b.GetSecureTlsBootstrappingGetAttestedDataTimeout(),
			"get-credential-timeout":      b.GetSecureTlsBootstrappingGetCredentialTimeout(),
		},
		Environment: t.variables()["AZURE_ENVIRONMENT_FILEPATH"], After: slices.Concat(after, t.node), Timeout: timeout,
	}
	t.node = append(t.node, t.add("bootstrapping_config", securebootstrap.Resources(s)...)...)
}

// azureIdentity is who the machine is to Microsoft Entra ID, where it joins as that;
// nil where it joins otherwise.
func (t *translation) azureIdentity() *desired.AzureIdentity {
	b, auth := t.cfg.GetBootstrappingConfig(), t.cfg.GetAuthConfig()
	a := &desired.AzureIdentity{TenantID: auth.GetTenantId(), ServerID: cmp.Or(b.GetSecureTlsBootstrappingAadResource(), azureidentity.AKS)}
	switch b.GetBootstrappingAuthMethod() {
	case aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_ARC_MSI:
		a.Kind = desired.AzureArc
	case aksnodeconfigv1.BootstrappingAuthMethod_BOOTSTRAPPING_AUTH_METHOD_AZURE_MSI:
		a.Kind, a.ClientID = desired.AzureManagedIdentity, cmp.Or(b.GetSecureTlsBootstrappingUserAssignedIdentityId(), auth.GetAssignedIdentityId())
	default:
		return nil
	}
	return a
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

// oneAnswer is how long a busy API server may take over one question.
const oneAnswer = 10 * time.Second

// credentialBudget: a request for a certificate may wait for 2 minutes until it is approved.
// Where cse_timeout is short it still has the time of one answer, as far as there is any.
func (t *translation) credentialBudget() time.Duration {
	return max(t.budget(2, 2*time.Minute), t.budget(13, oneAnswer))
}

func (t *translation) credential() (kubelet.Credential, error) {
	c := kubelet.Credential{
		Token:   desired.Secret(t.cfg.GetBootstrappingConfig().GetTlsBootstrappingToken()),
		Timeout: t.credentialBudget(),
	}
	if c.Token != "" {
		return c, nil
	}
	if c.Elsewhere = attested(t); c.Elsewhere {
		return c, nil
	}
	if c.Azure = t.azureIdentity(); c.Azure != nil {
		c.Program = cmp.Or(t.facts.Program, packetfilter.Program)
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
		RegistrySuffix: t.registrySuffix(), Registry: t.cfg.GetAzurePrivateRegistryServer(),
	}
	s.URL, s.Package = t.providerSource()
	if server := t.cfg.GetBootstrapProfileContainerRegistryServer(); server != "" {
		s.Mirror, s.MirrorOf = server, microsoftRegistry
	}
	if boundPulls(t) && t.podIdentities() {
		s.Pods = t.podIdentity()
	}
	rs, err := credentialprovider.Resources(s)
	if err != nil {
		return err
	}
	t.node = append(t.node, t.add("kube_binary_config.linux_credential_provider_url", rs...)...)
	return nil
}

// podIdentities: an older kubelet does not start with what they take.
func (t *translation) podIdentities() bool {
	return gates.Takes(gates.PodTokens, t.cfg.GetKubernetesVersion())
}

func (t *translation) podIdentity() *credentialprovider.PodIdentity {
	p := t.cfg.GetServiceAccountImagePullProfile()
	return &credentialprovider.PodIdentity{
		SNI: p.GetLocalAuthoritySni(), APIServer: t.cfg.GetApiServerConfig().GetApiServerName(),
		ClientID: p.GetDefaultClientId(), TenantID: p.GetDefaultTenantId(),
	}
}
