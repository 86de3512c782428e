package azurejson

import "strings"

// CustomCloud is the name of a cloud whose endpoints are in EnvironmentFile.
const CustomCloud = "AzureStackCloud"

// clouds that are not the public one, by the beginning of their regions' names.
var clouds = []struct {
	name    string
	regions []string
}{
	{"AzureChinaCloud", []string{"china"}},
	{"AzureGermanCloud", []string{"germanynortheast", "germanycentral"}},
	{"AzureUSGovernmentCloud", []string{"usgov", "usdod"}},
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
