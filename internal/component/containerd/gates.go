package containerd

import "k8s.io/apimachinery/pkg/util/version"

// The differences between versions of containerd that its configuration knows, by the
// words that containerd reads.
const (
	configV3Words  = "version = 3"
	configV2Words  = "version = 2"
	cdi            = "enable_cdi"
	manyPluginDirs = "bin_dirs ="
	onePluginDir   = "bin_dir ="
	kataConfig     = "configuration.toml"
	kataCommand    = "runtimes.katacli]"
	mergedDropIns  = "imports, member by member"
)

// gate says which versions of containerd are given something: those from since on,
// without those from until on. "" is no bound.
type gate struct{ since, until string }

// gates is the whole list. A version that can't be read counts as old: containerd 2 reads
// what is written for containerd 1 as well. containerd 2 reads version 3 wherever it reads
// a later one, so that none is written.
var gates = map[string]gate{
	configV3Words:  {since: "2.0.0"},
	configV2Words:  {until: "2.0.0"},
	cdi:            {since: "1.7.0", until: "2.0.0"}, // later versions have it on
	manyPluginDirs: {since: "2.1.0"},                 // where the single one is deprecated
	onePluginDir:   {until: "2.1.0"},
	kataConfig:     {since: "2.0.0"}, // as published: with older ones it is found without
	kataCommand:    {until: "2.0.0"}, // as published
	mergedDropIns:  {since: "2.2.0"}, // older ones take a plugin's table as a whole
}

// takes says whether a version of containerd is given something that has a gate.
func takes(version, what string) bool {
	g := gates[what]
	return (g.since == "" || since(version, g.since)) && (g.until == "" || !since(version, g.until))
}

// since says whether v is known and at least least.
func since(v, least string) bool {
	have, err := version.ParseGeneric(v)
	return err == nil && have.AtLeast(version.MustParseGeneric(least))
}

// Modern says whether a version is known to be of containerd's second generation.
func Modern(version string) bool { return takes(version, configV3Words) }
