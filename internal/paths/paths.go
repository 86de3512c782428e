// Package paths names the directories and sockets that more than one package uses.
package paths

// Where berth keeps its own things, and where containerd listens.
const (
	StateDir    = "/var/lib/berth" // lasts: ledger, originals, notes
	RunDir      = "/run/berth"     // until the next boot: lock, stamps, tokens
	SettingsDir = "/etc/berth"     // read by people, too

	ContainerdSocket = "/run/containerd/containerd.sock"
)
