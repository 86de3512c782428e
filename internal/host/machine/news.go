package machine

import (
	"sync"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// listener hears every signal of a connection in the order in which they come,
// before those who wait for some.
type listener struct {
	registrar
	hear func(*dbus.Signal)
}

func newListener(hear func(*dbus.Signal)) *listener {
	return &listener{dbus.NewSequentialSignalHandler().(registrar), hear}
}

// registrar is what godbus' own handler of signals can do.
type registrar interface {
	dbus.SignalHandler
	dbus.SignalRegistrar
	dbus.Terminator
}

// DeliverSignal implements dbus.SignalHandler. It must not wait.
func (l *listener) DeliverSignal(iface, name string, s *dbus.Signal) {
	l.hear(s)
	l.registrar.DeliverSignal(iface, name, s)
}

// news is what systemd says of units without being asked. It outlives
// connections.
type news struct {
	mu sync.Mutex
	// tested are the last results of conditions and assertions, by object: systemd
	// tells them before it says that a job has ended, and may then forget the unit.
	tested map[dbus.ObjectPath]props
	// readers want to know of changes.
	readers map[*unitWatch]bool
}

func (n *news) add(w *unitWatch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.readers == nil {
		n.readers = map[*unitWatch]bool{}
	}
	n.readers[w] = true
}

func (n *news) remove(w *unitWatch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.readers, w)
}

// testProps are the properties that hold what conditions and assertions said.
var testProps = []string{"ConditionResult", "AssertResult", "ConditionTimestamp"}

// hear takes in a signal.
func (n *news) hear(s *dbus.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case s.Name == properties+".PropertiesChanged" && len(s.Body) > 1 && s.Body[0] == unitIface:
		changed, _ := s.Body[1].(map[string]dbus.Variant)
		n.remember(s.Path, changed)
		for r := range n.readers {
			r.changed(s.Path, changed)
		}
	case s.Name == managerIface+".Reloading" && len(s.Body) > 0 && s.Body[0] == false:
		for r := range n.readers {
			r.reloaded()
		}
	}
}

// remember keeps what conditions and assertions said.
func (n *news) remember(path dbus.ObjectPath, p props) {
	if p.at(testProps[2]).IsZero() {
		return
	}
	if n.tested == nil {
		n.tested = map[dbus.ObjectPath]props{}
	}
	n.tested[path] = props{}
	for _, name := range testProps {
		n.tested[path][name] = p[name]
	}
}

// recall adds to a unit's properties what systemd has forgotten of it.
func (n *news) recall(p props) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !p.at(testProps[2]).IsZero() {
		return
	}
	for name, v := range n.tested[objectOf(get[string](p, "Id"))] {
		p[name] = v
	}
}

// objectOf is the D-Bus object of a unit.
func objectOf(unit string) dbus.ObjectPath {
	return dbus.ObjectPath(managerPath + "/unit/" + systemd.PathBusEscape(unit))
}
