// Package resolver gives pods name servers that they can reach.
package resolver

import "github.com/berth-dev/berth/internal/desired"

const (
	// List is where systemd-resolved keeps the servers that it asks itself.
	List = "/run/systemd/resolve/resolv.conf"
	path = "/etc/resolv.conf"
)

// Resources make the machine's list that of systemd-resolved where that runs.
// Without it the list names a server on the loopback interface, which is another
// one in each pod.
func Resources(runs bool) []desired.Resource {
	if !runs {
		return nil
	}
	return []desired.Resource{&desired.Link{Path: path, Target: List}}
}
