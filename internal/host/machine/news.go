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
	// readers want to know of changes; a unit that every one of them hears of has
	// no path.
	readers map[*unitWatch]struct{}
}

// testProps are the properties that hold what conditions and assertions said.
var testProps = []string{"ConditionResult", "AssertResult", "ConditionTimestamp"}

// hear takes in a signal.
func (n *news) hear(s *dbus.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch s.Name {
	case properties + ".PropertiesChanged":
		n.remember(s)
		n.tell(s.Path)
	case managerIface + ".UnitNew", managerIface + ".UnitRemoved":
		if len(s.Body) == 2 {
			p, _ := s.Body[1].(dbus.ObjectPath)
			n.tell(p)
		}
	case managerIface + ".Reloading":
		n.tell("")
	}
}

// remember keeps what conditions and assertions said.
func (n *news) remember(s *dbus.Signal) {
	if len(s.Body) < 2 || s.Body[0] != unitIface {
		return
	}
	changed, _ := s.Body[1].(map[string]dbus.Variant)
	if p := props(changed); !p.at(testProps[2]).IsZero() {
		if n.tested == nil {
			n.tested = map[dbus.ObjectPath]props{}
		}
		n.tested[s.Path] = props{}
		for _, name := range testProps {
			n.tested[s.Path][name] = p[name]
		}
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

// tell wakes those who watch a unit.
func (n *news) tell(p dbus.ObjectPath) {
	for r := range n.readers {
		r.changed(p)
	}
}
