package azurejson

import (
	"testing"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResource(t *testing.T) {
	exponent, jitter := 1.5, 1.0
	for name, mode := range map[string]string{"v1.json": "v1", "v2.json": "v2"} {
		r, err := Resource(Settings{
			Cloud: "AzurePublicCloud", TenantID: "tenant", SubscriptionID: "subscription", AADClientSecret: `quote " and <`,
			BackoffMode: mode, Backoff: true, BackoffRetries: 6, BackoffExponent: &exponent, BackoffDuration: 5, BackoffJitter: &jitter,
			RateLimit: true, RateLimitQPS: 10, RateLimitQPSWrite: 0.5, RateLimitBucket: 100, RateLimitBucketWrite: 100,
			ExcludeMasterFromStandardLB: true, MaximumLoadBalancerRuleCount: 148,
		})
		if err != nil {
			t.Fatal(err)
		}
		f := golden.File(t, golden.State(t, []desired.Resource{r}), Path)
		if !f.Content.IsSecret() || f.Mode != 0o600 {
			t.Errorf("azure.json is no secret: mode %s", f.Mode)
		}
		golden.Check(t, name, string(f.Content.Data()))
	}
}

func TestCloudOf(t *testing.T) {
	for region, want := range map[string]string{
		"westeurope": "AzurePublicCloud", "germanywestcentral": "AzurePublicCloud", "": "AzurePublicCloud",
		"chinaeast2": "AzureChinaCloud", " China East 2 ": "AzureChinaCloud", "germanycentral2": "AzurePublicCloud", "Germany\tCentral": "AzureGermanCloud", "ChinaNorth": "AzureChinaCloud",
		"germanynortheast": "AzureGermanCloud", "germanycentral": "AzureGermanCloud",
		"usgovvirginia": "AzureUSGovernmentCloud", "usdodeast": "AzureUSGovernmentCloud",
	} {
		if got := CloudOf(region); got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
}
