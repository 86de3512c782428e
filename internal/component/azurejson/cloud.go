package azurejson

import "strings"

// Names of clouds, as cloud-provider-azure has them.
const (
	// CustomCloud is the name of a cloud whose endpoints are in EnvironmentFile.
	CustomCloud = "AzureStackCloud"
	// ChinaCloud has registries of its own.
	ChinaCloud = "AzureChinaCloud"

	publicCloud     = "AzurePublicCloud"
	germanCloud     = "AzureGermanCloud"
	governmentCloud = "AzureUSGovernmentCloud"
)

// CloudOf is the Azure cloud that a location belongs to. Blanks and case do not
// count: a location may be written as people read it, "China East 2".
func CloudOf(location string) string {
	name := strings.ToLower(strings.Join(strings.Fields(location), ""))
	switch {
	case strings.HasPrefix(name, "china"):
		return ChinaCloud
	case name == "germanynortheast", name == "germanycentral":
		return germanCloud
	case strings.HasPrefix(name, "usgov"), strings.HasPrefix(name, "usdod"):
		return governmentCloud
	}
	return publicCloud
}
