// Package azurejson writes the configuration of Azure's cloud provider, which the
// registry credential provider and storage drivers read as well. The keys are
// those of sigs.k8s.io/cloud-provider-azure.
package azurejson

import (
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/internal/desired"
)

// Published paths.
const (
	Path            = "/etc/kubernetes/azure.json"
	EnvironmentFile = "/etc/kubernetes/akscustom.json"
)

// Settings are the keys of the file, in the order in which they are written.
type Settings struct {
	Cloud                        string   `json:"cloud"`
	TenantID                     string   `json:"tenantId"`
	SubscriptionID               string   `json:"subscriptionId"`
	AADClientID                  string   `json:"aadClientId"`
	AADClientSecret              string   `json:"aadClientSecret"`
	ResourceGroup                string   `json:"resourceGroup"`
	Location                     string   `json:"location"`
	VMType                       string   `json:"vmType"`
	SubnetName                   string   `json:"subnetName"`
	SecurityGroupName            string   `json:"securityGroupName"`
	VnetName                     string   `json:"vnetName"`
	VnetResourceGroup            string   `json:"vnetResourceGroup"`
	RouteTableName               string   `json:"routeTableName"`
	PrimaryAvailabilitySetName   string   `json:"primaryAvailabilitySetName"`
	PrimaryScaleSetName          string   `json:"primaryScaleSetName"`
	BackoffMode                  string   `json:"cloudProviderBackoffMode"`
	Backoff                      bool     `json:"cloudProviderBackoff"`
	BackoffRetries               int32    `json:"cloudProviderBackoffRetries"`
	BackoffExponent              *float64 `json:"cloudProviderBackoffExponent,omitempty"`
	BackoffDuration              int32    `json:"cloudProviderBackoffDuration"`
	BackoffJitter                *float64 `json:"cloudProviderBackoffJitter,omitempty"`
	RateLimit                    bool     `json:"cloudProviderRateLimit"`
	RateLimitQPS                 float64  `json:"cloudProviderRateLimitQPS"`
	RateLimitBucket              int32    `json:"cloudProviderRateLimitBucket"`
	RateLimitQPSWrite            float64  `json:"cloudProviderRateLimitQPSWrite"`
	RateLimitBucketWrite         int32    `json:"cloudProviderRateLimitBucketWrite"`
	UseManagedIdentityExtension  bool     `json:"useManagedIdentityExtension"`
	UserAssignedIdentityID       string   `json:"userAssignedIdentityID"`
	UseInstanceMetadata          bool     `json:"useInstanceMetadata"`
	LoadBalancerSku              string   `json:"loadBalancerSku"`
	DisableOutboundSNAT          bool     `json:"disableOutboundSNAT"`
	ExcludeMasterFromStandardLB  bool     `json:"excludeMasterFromStandardLB"`
	ProviderVaultName            string   `json:"providerVaultName"`
	MaximumLoadBalancerRuleCount int32    `json:"maximumLoadBalancerRuleCount"`
	ProviderKeyName              string   `json:"providerKeyName"`
	ProviderKeyVersion           string   `json:"providerKeyVersion"`
}

// backoffV2 paces itself: exponent and jitter have no meaning in it.
const backoffV2 = "v2"

// Resource is the file. It is a secret: it may hold the service principal's.
func Resource(s Settings) (desired.Resource, error) {
	if s.BackoffMode == backoffV2 {
		s.BackoffExponent, s.BackoffJitter = nil, nil
	}
	if s.ProviderKeyName == "" {
		s.ProviderKeyName = "k8s"
	}
	b, err := json.MarshalIndent(s, "", "    ")
	if err != nil {
		return nil, fmt.Errorf("write azure.json: %w", err)
	}
	return &desired.File{Path: Path, Content: desired.SecretBytes(append(b, '\n')), Mode: 0o600, Life: desired.Managed}, nil
}

// Environment is the file with the endpoints of a cloud of one's own.
func Environment(content []byte) desired.Resource {
	return &desired.File{Path: EnvironmentFile, Content: desired.Bytes(content), Mode: 0o600, Life: desired.Managed}
}
