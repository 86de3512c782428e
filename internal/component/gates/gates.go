// Package gates is the table of what only some versions of Kubernetes and containerd are
// given.
package gates

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
)

// Reader is the program that reads something.
type Reader string

// The readers; each has its version from where the node says it.
const (
	Kubelet    Reader = "kubelet"
	Containerd Reader = "containerd"
)

// What has a gate, by the word that its reader, or systemd for it, reads.
const (
	ConfigDirFlag = "--config-dir"
	NodeIPFlag    = "--node-ip"
	RuntimeKind   = "--container-runtime=remote"
	StreamingFlag = "--streaming-connection-idle-timeout"
	Watchdog      = "WatchdogSec"
	PodTokens     = "tokenAttributes"

	ConfigV3       = "version = 3"
	ConfigV2       = "version = 2"
	CDI            = "enable_cdi"
	ManyPluginDirs = "bin_dirs ="
	OnePluginDir   = "bin_dir ="
	KataConfig     = "configuration.toml"
	KataCommand    = "runtimes.katacli]"
	MergedDropIns  = "imports, member by member"
)

// Gate says which versions of a reader are given something: those from Since on, without
// those from Until on. "" is no bound.
type Gate struct {
	Name, Since, Until string
	Reader             Reader
	// KnownOnly: a version that can't be read counts as older than all. Else it counts as
	// newer.
	KnownOnly bool
	// Why is why there, where the reader does not say so itself.
	Why string
}

// table is the whole list. containerd 2 reads what is written for containerd 1 as well, so
// that one of a version that can't be read counts as old. It reads version 3 of its
// configuration wherever it reads a later one, so that none is written.
var table = []Gate{
	{ConfigDirFlag, "1.30.0", "", Kubelet, false, "before, it was alpha"},
	{NodeIPFlag, "1.29.0", "", Kubelet, false, "as published"},
	{RuntimeKind, "", "1.27.0", Kubelet, false, "the flag is gone: there is only one kind"},
	{StreamingFlag, "", "1.34.0", Kubelet, false, "flag and field of the file; as published"},
	{Watchdog, "1.32.0", "", Kubelet, false, "as published; an older kubelet sends systemd no keep-alive"},
	{PodTokens, "1.34.0", "", Kubelet, true, "without the feature, or without cacheType, kubelet does not start"},

	{ConfigV3, "2.0.0", "", Containerd, true, "the second generation"},
	{ConfigV2, "", "2.0.0", Containerd, true, "the first generation"},
	{CDI, "1.7.0", "2.0.0", Containerd, true, "later versions have it on"},
	{ManyPluginDirs, "2.1.0", "", Containerd, true, "the single one is deprecated"},
	{OnePluginDir, "", "2.1.0", Containerd, true, "deprecated since"},
	{KataConfig, "2.0.0", "", Containerd, true, "as published: with older ones it is found without"},
	{KataCommand, "", "2.0.0", Containerd, true, "as published"},
	{MergedDropIns, "2.2.0", "", Containerd, true, "older ones take a plugin's table as a whole"},
}

// Table is a copy of the list.
func Table() []Gate { return slices.Clone(table) }

// Of are the gates of one reader.
func Of(r Reader) []Gate {
	return slices.DeleteFunc(Table(), func(g Gate) bool { return g.Reader != r })
}

// Find is the gate of a name; the zero Gate, which is for every version, where there is none.
func Find(name string) Gate {
	i := slices.IndexFunc(table, func(g Gate) bool { return g.Name == name })
	if i < 0 {
		return Gate{}
	}
	return table[i]
}

// Takes says whether a version of its reader is given what a name stands for.
func Takes(name, version string) bool {
	g := Find(name)
	return (g.Since == "" || g.reached(version, g.Since)) && (g.Until == "" || !g.reached(version, g.Until))
}

// reached says whether v is at least a bound.
func (g Gate) reached(v, bound string) bool {
	have, err := version.ParseGeneric(v)
	if err != nil {
		return !g.KnownOnly
	}
	return have.AtLeast(version.MustParseGeneric(bound))
}
