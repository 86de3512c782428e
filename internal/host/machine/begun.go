package machine

import (
	"slices"

	"github.com/godbus/dbus/v5"
)

// begun is somebody who wants to know that the own program of a unit runs.
type begun struct {
	path dbus.ObjectPath
	f    func()
}

// runs are the states of a service whose own program runs, or has (systemd's
// service_state): what comes before it is over.
var runs = []string{"start", "start-post", "running", "exited"}

// tellBegun has f called, once, when the own program of a unit runs, until the function is
// called that it returns.
func (n *news) tellBegun(unit string, f func()) (over func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.begun == nil {
		n.begun = map[*begun]bool{}
	}
	b := &begun{objectOf(unit), f}
	n.begun[b] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.begun, b)
	}
}

// begin tells that the own program of a unit runs, if that is what changed.
func (n *news) begin(path dbus.ObjectPath, p props) {
	for b := range n.begun {
		if b.path == path && slices.Contains(runs, get[string](p, "SubState")) {
			delete(n.begun, b)
			b.f()
		}
	}
}
