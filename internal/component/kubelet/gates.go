package kubelet

// The differences between versions of kubelet that its service knows, by the word
// that kubelet or systemd reads.
const (
	configDirFlag = "--config-dir"
	nodeIPFlag    = "--node-ip"
	runtimeKind   = "--container-runtime=remote"
	streamingFlag = "--streaming-connection-idle-timeout"
	watchdog      = "WatchdogSec"
)

// gate says which versions of kubelet are given something: those from since on,
// without those from until on. "" is no bound.
type gate struct{ since, until string }

// gates is the whole list. A version that can't be read counts as new.
var gates = map[string]gate{
	configDirFlag: {since: "1.30.0"}, // before, it was alpha
	nodeIPFlag:    {since: "1.29.0"}, // as published
	runtimeKind:   {until: "1.27.0"}, // the flag is gone: there is only one kind
	streamingFlag: {until: "1.34.0"}, // flag and field of the file; as published
	watchdog:      {since: "1.32.0"}, // as published; an older kubelet sends systemd no keep-alive
}

// takes says whether this version of kubelet is given something that has a gate.
func (s Settings) takes(what string) bool {
	g := gates[what]
	return (g.since == "" || since(s.Version, g.since)) && (g.until == "" || !since(s.Version, g.until))
}
