package machine

import (
	"strings"
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
	// Only units are in it that somebody has asked for: each pod and each login make
	// others, without end.
	tested map[dbus.ObjectPath]tests
	// begun are those who want to know that the own program of a unit runs.
	begun map[*begun]bool
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

// tests are what conditions and assertions said, and when, in microseconds.
type tests struct {
	condition, assertion bool
	at                   uint64
}

// The properties that hold it.
const (
	conditionProp  = "ConditionResult"
	assertionProp  = "AssertResult"
	testedWhenProp = "ConditionTimestamp"
)

// hear takes in a signal. Nothing of it may be kept: its strings, also the types of
// its variants, are parts of a buffer of 4 KB.
func (n *news) hear(s *dbus.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case s.Name == properties+".PropertiesChanged" && len(s.Body) > 1 && s.Body[0] == unitIface:
		changed, _ := s.Body[1].(map[string]dbus.Variant)
		path := dbus.ObjectPath(strings.Clone(string(s.Path)))
		n.remember(path, changed)
		n.begin(path, changed)
		for r := range n.readers {
			r.changed(path, changed)
		}
	case s.Name == managerIface+".Reloading" && len(s.Body) > 0 && s.Body[0] == false:
		for r := range n.readers {
			r.reloaded()
		}
	}
}

// heard says whether hear does something with a change of an object.
func (n *news) heard(path dbus.ObjectPath) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, attended := n.tested[path]; attended {
		return true
	}
	for r := range n.readers {
		if len(r.paths[path]) > 0 {
			return true
		}
	}
	return false
}

// attend makes it remember what will be said of a unit.
func (n *news) attend(unit string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.enter(objectOf(unit))
}

func (n *news) enter(path dbus.ObjectPath) {
	if n.tested == nil {
		n.tested = map[dbus.ObjectPath]tests{}
	}
	if _, attended := n.tested[path]; !attended {
		n.tested[path] = tests{}
	}
}

// remember keeps what conditions and assertions said.
func (n *news) remember(path dbus.ObjectPath, p props) {
	at := get[uint64](p, testedWhenProp)
	if _, attended := n.tested[path]; attended && at != 0 {
		n.tested[path] = tests{get[bool](p, conditionProp), get[bool](p, assertionProp), at}
	}
}

// recall adds to a unit's properties what systemd has forgotten of it, and attends to
// its real name.
func (n *news) recall(p props) {
	n.mu.Lock()
	defer n.mu.Unlock()
	path := objectOf(get[string](p, "Id"))
	n.enter(path)
	if t := n.tested[path]; t.at != 0 && get[uint64](p, testedWhenProp) == 0 {
		p[conditionProp], p[assertionProp] = dbus.MakeVariant(t.condition), dbus.MakeVariant(t.assertion)
		p[testedWhenProp] = dbus.MakeVariant(t.at)
	}
}

// objectOf is the D-Bus object of a unit.
func objectOf(unit string) dbus.ObjectPath {
	return dbus.ObjectPath(managerPath + "/unit/" + systemd.PathBusEscape(unit))
}
