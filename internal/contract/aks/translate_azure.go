package aks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/netip"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component/azurejson"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
)

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

func (t *translation) azure() error {
	s, err := t.azureSettings()
	if err != nil {
		return err
	}
	file, err := azurejson.Resource(s)
	if err != nil {
		return err
	}
	t.node = append(t.node, t.add("cluster_config", file)...)
	if decode.CustomCloud(t.cfg) { // kubelet is told of the file, whatever is in it
		env := plainOrBase64(t.cfg.GetCustomCloudConfig().GetCustomEnvJsonContent())
		t.node = append(t.node, t.add("custom_cloud_config", azurejson.Environment(env))...)
	}
	return nil
}

// cloud is the name of the Azure cloud that the node is in.
func (t *translation) cloud() string {
	if decode.CustomCloud(t.cfg) {
		return azurejson.CustomCloud
	}
	return azurejson.CloudOf(t.cfg.GetClusterConfig().GetLocation())
}

// plainOrBase64: clients send this document both ways.
func plainOrBase64(text string) []byte {
	if trimmed := bytes.TrimSpace([]byte(text)); json.Valid(trimmed) {
		return trimmed
	}
	if b, err := unbase64("custom_cloud_config.custom_env_json_content", text); err == nil {
		return b
	}
	return []byte(text)
}

// variables go to kubelet's environment as published.
func (t *translation) variables() map[string]string {
	out := map[string]string{}
	if p, ok := networkPolicies[t.cfg.GetNetworkConfig().GetNetworkPolicy()]; ok {
		out["NETWORK_POLICY"] = p
	}
	if decode.CustomCloud(t.cfg) {
		out["AZURE_ENVIRONMENT_FILEPATH"] = azurejson.EnvironmentFile
	}
	if t.facts.RotationOff {
		out[kubelet.RotationOffVariable] = "true"
	}
	if t.facts.FromPackages {
		out[kubelet.FromPackagesVariable] = "true"
	}
	return out
}

var networkPolicies = map[aksnodeconfigv1.NetworkPolicy]string{
	aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_NONE:   "none",
	aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_AZURE:  "azure",
	aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_CALICO: "calico",
}

var vmTypes = map[aksnodeconfigv1.VmType]string{
	aksnodeconfigv1.VmType_VM_TYPE_STANDARD: "standard",
	aksnodeconfigv1.VmType_VM_TYPE_VMSS:     "vmss",
}

var loadBalancerSkus = map[aksnodeconfigv1.LoadBalancerSku]string{
	aksnodeconfigv1.LoadBalancerSku_LOAD_BALANCER_SKU_BASIC:    "basic",
	aksnodeconfigv1.LoadBalancerSku_LOAD_BALANCER_SKU_STANDARD: "standard",
}

func (t *translation) azureSettings() (azurejson.Settings, error) {
	auth, cluster := t.cfg.GetAuthConfig(), t.cfg.GetClusterConfig()
	secret, err := unbase64("auth_config.service_principal_secret", auth.GetServicePrincipalSecret())
	if err != nil {
		return azurejson.Settings{}, err
	}
	s := azurejson.Settings{
		Cloud: t.cloud(), TenantID: auth.GetTenantId(),
		SubscriptionID: auth.GetSubscriptionId(), AADClientID: auth.GetServicePrincipalId(),
		AADClientSecret: string(secret), UseManagedIdentityExtension: auth.GetUseManagedIdentityExtension(),
		UserAssignedIdentityID: auth.GetAssignedIdentityId(),
		ResourceGroup:          cluster.GetResourceGroup(), Location: cluster.GetLocation(),
		VMType:                     vmTypes[cluster.GetVmType()],
		PrimaryAvailabilitySetName: cluster.GetPrimaryAvailabilitySet(),
		PrimaryScaleSetName:        cluster.GetPrimaryScaleSet(),
		UseInstanceMetadata:        cluster.GetUseInstanceMetadata(),
	}
	azureNetwork(&s, cluster)
	azureRetries(&s, cluster.GetCloudProviderConfig())
	return s, nil
}

func azureNetwork(s *azurejson.Settings, cluster *aksnodeconfigv1.ClusterConfig) {
	n, lb := cluster.GetClusterNetworkConfig(), cluster.GetLoadBalancerConfig()
	if lb == nil {
		lb = &aksnodeconfigv1.LoadBalancerConfig{}
	}
	s.SubnetName, s.SecurityGroupName = n.GetSubnet(), n.GetSecurityGroupName()
	s.VnetName, s.VnetResourceGroup = n.GetVnetName(), n.GetVnetResourceGroup()
	s.RouteTableName = n.GetRouteTable()
	s.LoadBalancerSku = loadBalancerSkus[lb.GetLoadBalancerSku()]
	s.DisableOutboundSNAT = lb.GetDisableOutboundSnat()
	s.ExcludeMasterFromStandardLB = or(lb.ExcludeMasterFromStandardLoadBalancer, true)
	s.MaximumLoadBalancerRuleCount = or(lb.MaxLoadBalancerRuleCount, 148)
}

func azureRetries(s *azurejson.Settings, c *aksnodeconfigv1.CloudProviderConfig) {
	if c == nil {
		c = &aksnodeconfigv1.CloudProviderConfig{}
	}
	exponent, jitter := or(c.BackoffExponent, 0), or(c.BackoffJitter, 0)
	s.BackoffMode = cmp.Or(c.GetBackoffMode(), "v2")
	s.Backoff = or(c.Backoff, true)
	s.BackoffRetries = or(c.BackoffRetries, 6)
	s.BackoffExponent = &exponent
	s.BackoffDuration = or(c.BackoffDuration, 5)
	s.BackoffJitter = &jitter
	s.RateLimit = or(c.RateLimit, true)
	s.RateLimitQPS = or(c.RateLimitQps, 10)
	s.RateLimitQPSWrite = or(c.RateLimitQpsWrite, 10)
	s.RateLimitBucket = or(c.RateLimitBucket, 100)
	s.RateLimitBucketWrite = or(c.RateLimitBucketWrite, 100)
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
