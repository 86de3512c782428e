package aks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPathsAreSpelledAsInTheDocument: both spellings may stand in one document;
// what it does not name is spelled as most of it.
func TestPathsAreSpelledAsInTheDocument(t *testing.T) {
	const start = `{"version":"v1","kubernetesVersion":"1.34.2","kubernetesCaCert":"`
	doc, err := Decode([]byte(start + sample(t, "minimal.json").GetKubernetesCaCert() + `",
		"apiServerConfig":{"apiServerName":"api.example"},
		"clusterConfig":{"resourceGroup":"rg","location":"eastus","clusterNetworkConfig":{"vnetName":"v","routeTable":"r"}},
		"authConfig":{"subscriptionId":"00000000-0000-0000-0000-000000000000"},
		"bootstrappingConfig":{"tlsBootstrappingToken":"abcdef.0123456789abcdef"},
		"kubeletConfig":{"kubeletFlags":{"--container-runtime":"remote"}},
		"gpuConfig":{"enable_nvidia":true,"enableAmdGpu":true,"mig_profile_layout":["MIG1g"]},
		"disable_custom_data":true,
		"customLinuxOsConfig":{"transparent_defrag":"never"}}`))
	if err != nil {
		t.Fatal(err)
	}
	st, err := Translate(doc, machine)
	if err != nil {
		t.Fatal(err)
	}
	var unused []string
	for _, n := range st.Unused {
		unused = append(unused, n.Path)
	}
	if diff := cmp.Diff([]string{"disable_custom_data", "gpuConfig.enableAmdGpu"}, unused); diff != "" {
		t.Errorf("unused:\n%s", diff)
	}
	if len(st.Unhandled) > 0 {
		t.Errorf("unhandled: %v", st.Unhandled)
	}
	fields := map[string]bool{}
	for _, r := range st.Resources {
		fields[r.Order().Field] = true
	}
	for _, want := range []string{"apiServerConfig.apiServerName", "networkConfig.networkPlugin", "kubeBinaryConfig"} {
		if !fields[want] {
			t.Errorf("no resource comes from %s: %v", want, fields)
		}
	}
}
