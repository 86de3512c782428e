package machine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/host"
)

const (
	busName      = "org.freedesktop.systemd1"
	managerPath  = "/org/freedesktop/systemd1"
	managerIface = "org.freedesktop.systemd1.Manager"
	unitIface    = "org.freedesktop.systemd1.Unit"
	typeIface    = "org.freedesktop.systemd1."
	properties   = "org.freedesktop.DBus.Properties"
)

// props are properties of a D-Bus object.
type props map[string]dbus.Variant

// get is a property, the zero value where it is missing or of another type.
func get[T any](p props, name string) T {
	v, _ := p[name].Value().(T)
	return v
}

// at is a time in microseconds, zero if never.
func (p props) at(name string) time.Time {
	usec := get[uint64](p, name)
	if usec == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(usec))
}

// activeFor is how long a unit has been active. systemd tells when it became so by
// CLOCK_MONOTONIC, too, which nobody sets.
func (p props) activeFor() time.Duration {
	var now unix.Timespec
	since := get[uint64](p, "ActiveEnterTimestampMonotonic")
	if get[string](p, "ActiveState") != "active" || since == 0 || unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano()) - time.Duration(since)*time.Microsecond
}

// names are lists of units joined, each once and in order; nil if empty.
func (p props) names(lists ...string) []string {
	var out []string
	for _, list := range lists {
		out = append(out, get[[]string](p, list)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// typeProps are the few properties that are wanted of those that only units of a
// type have, and of which interface: all of a service's cost systemd far more to
// tell, since it reads the cgroup for some.
var typeProps = map[string]struct {
	iface string
	names []string
}{
	".service": {typeIface + "Service", []string{
		"Result", "NRestarts", "MainPID", "ExecMainStartTimestamp", "ExecMainStatus", "Type", "RemainAfterExit",
	}},
	".socket":    {typeIface + "Socket", []string{"Result"}},
	".timer":     {typeIface + "Timer", []string{"Result"}},
	".path":      {typeIface + "Path", []string{"Result"}},
	".mount":     {typeIface + "Mount", []string{"Result"}},
	".automount": {typeIface + "Automount", []string{"Result"}},
	".swap":      {typeIface + "Swap", []string{"Result"}},
	".scope":     {typeIface + "Scope", []string{"Result"}},
}

// Dependencies by which the stop of one unit stops another, seen from both sides.
var (
	requireProps   = []string{"Requires", "Requisite", "BindsTo"}
	needProps      = []string{"Requires", "Requisite", "BindsTo", "PartOf"}
	dependentProps = []string{"RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf"}
)

// Unit implements host.Systemd. A unit's properties come in one call, a
// type's own in a few more that are on the way at the same time.
func (m *manager) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	if err := host.CheckUnit(name); err != nil {
		return host.UnitStatus{}, err
	}
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	m.news.attend(name)
	if st, ok := m.asBefore(ctx, name); ok {
		return st, nil
	}
	begun, private := m.described.begin(name), false
	p, err := call(ctx, m, func(c *connection) (props, error) {
		private = c.private
		return c.unit(ctx, name)
	})
	if err != nil || !private {
		m.described.end(name, begun, host.UnitStatus{})
	}
	if err != nil {
		return host.UnitStatus{}, refused(name, err)
	}
	m.news.recall(p)
	st := status(name, p)
	m.described.end(name, begun, st)
	return st, nil
}

func (c *connection) unit(ctx context.Context, name string) (props, error) {
	p, err := c.all(ctx, name, unitIface)
	if err != nil {
		return nil, err
	}
	own := typeProps[path.Ext(name)]
	var more props
	switch {
	case get[string](p, "LoadState") == "not-found" && neverRan(p), own.iface == "":
		return p, nil
	case neverRan(p) && len(own.names) > 1:
		more, err = c.all(ctx, name, own.iface)
	default:
		more, err = c.single(ctx, name, own.iface, own.names)
	}
	if err = unlessAlias(err); err != nil {
		return nil, err
	}
	for _, n := range own.names {
		p[n] = more[n]
	}
	return p, nil
}

// single are some properties, for which is asked in one go.
func (c *connection) single(ctx context.Context, name, iface string, names []string) (props, error) {
	obj, calls := c.raw.Object(busName, objectOf(name)), make([]*dbus.Call, len(names))
	for i, n := range names {
		calls[i] = obj.GoWithContext(ctx, properties+".Get", 0, make(chan *dbus.Call, 1), iface, n)
	}
	out, refusal := props{}, error(nil)
	for i, n := range names {
		var v dbus.Variant
		err := (<-calls[i].Done).Store(&v)
		if _, answered := errors.AsType[dbus.Error](err); err != nil && !answered {
			return nil, err
		}
		if err != nil {
			refusal = err
			continue
		}
		out[n] = v
	}
	return out, refusal
}

// all are the properties of an interface.
func (c *connection) all(ctx context.Context, name, iface string) (props, error) {
	answer := c.raw.Object(busName, objectOf(name)).CallWithContext(ctx, properties+".GetAll", 0, iface)
	if answer.Err != nil {
		return nil, answer.Err
	}
	if len(answer.Body) == 1 {
		if all, ok := answer.Body[0].(map[string]dbus.Variant); ok {
			return all, nil
		}
	}
	return nil, fmt.Errorf("describe %s: %s does not hold its properties", name, answer.Body)
}

// neverRan says that a unit has not run since systemd loaded it. Where nothing refers to
// it, systemd loads it anew for each question, and all of a service's properties cost no
// more than one: it has no cgroup.
func neverRan(p props) bool {
	return get[string](p, "ActiveState") == "inactive" && len(get[[]byte](p, "InvocationID")) == 0
}

// Loaded implements host.Systemd.
func (m *manager) Loaded(ctx context.Context, name string) (bool, error) {
	if err := host.CheckUnit(name); err != nil {
		return false, err
	}
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	m.news.attend(name)
	loaded, err := call(ctx, m, func(c *connection) (bool, error) { return c.loaded(ctx, name) })
	return loaded, refused(name, err)
}

// NotFound implements host.Systemd.
func (m *manager) NotFound(ctx context.Context, names ...string) ([]string, error) {
	for _, name := range names {
		if err := host.CheckUnit(name); err != nil {
			return nil, err
		}
		m.news.attend(name)
	}
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	found, err := call(ctx, m, func(c *connection) ([]systemd.UnitStatus, error) { return c.ListUnitsByNamesContext(ctx, names) })
	if err != nil {
		return nil, fmt.Errorf("look for units: %w", err)
	}
	var out []string
	for _, u := range found {
		if u.LoadState == "not-found" && u.ActiveState == "inactive" {
			out = append(out, u.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// loaded says whether systemd has a unit loaded, and does not load it.
func (c *connection) loaded(ctx context.Context, name string) (bool, error) {
	err := c.raw.Object(busName, managerPath).CallWithContext(ctx, managerIface+".GetUnit", 0, name).Err
	if errors.Is(refused(name, err), host.ErrNoSuchUnit) {
		return false, nil
	}
	return err == nil, err
}

// briefProps are those that every unit has of host.UnitStatus.State.
var briefProps = []string{
	"Id", "LoadState", "ActiveState", "SubState", "FragmentPath", "DropInPaths", "NeedDaemonReload", "InvocationID", conditionProp, assertionProp, testedWhenProp,
}

// State implements host.Systemd. Of a unit that it has not loaded systemd tells all in
// less time than some.
func (m *manager) State(ctx context.Context, name string) (host.UnitStatus, error) {
	if err := host.CheckUnit(name); err != nil {
		return host.UnitStatus{}, err
	}
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	m.news.attend(name)
	p, err := call(ctx, m, func(c *connection) (props, error) {
		if loaded, err := c.loaded(ctx, name); err != nil || !loaded {
			return nil, err
		}
		return c.state(ctx, name)
	})
	if err != nil {
		return host.UnitStatus{}, refused(name, err)
	}
	if p == nil || forgotten(p) {
		st, err := m.Unit(ctx, name)
		return st.State(), err
	}
	m.news.recall(p)
	return status(name, p), nil
}

// forgotten says that a unit ended, and systemd forgot it, while its properties were told.
func forgotten(p props) bool {
	state := get[string](p, "ActiveState")
	return state != "inactive" && state != "failed" && len(get[[]byte](p, "InvocationID")) == 0
}

func (c *connection) state(ctx context.Context, name string) (props, error) {
	own := typeProps[path.Ext(name)]
	g, out, more := errgroup.Group{}, props{}, props{}
	g.Go(func() (err error) { out, err = c.single(ctx, name, unitIface, briefProps); return err })
	g.Go(func() (err error) {
		more, err = c.single(ctx, name, own.iface, own.names)
		return unlessAlias(err)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	maps.Copy(out, more)
	return out, nil
}

// unlessAlias leaves out that a unit has no properties of the type that its name says: it
// is another one's alias.
func unlessAlias(err error) error {
	if _, answered := errors.AsType[dbus.Error](err); answered {
		return nil
	}
	return err
}

// Invocation implements host.Systemd.
func (m *manager) Invocation(ctx context.Context, name string) (string, error) {
	if err := host.CheckUnit(name); err != nil {
		return "", err
	}
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	p, err := call(ctx, m, func(c *connection) (props, error) { return c.single(ctx, name, unitIface, []string{"InvocationID"}) })
	if err != nil {
		return "", refused(name, err)
	}
	return hex.EncodeToString(get[[]byte](p, "InvocationID")), nil
}

func status(name string, p props) host.UnitStatus {
	return host.UnitStatus{
		Name:             name,
		ID:               get[string](p, "Id"),
		Names:            p.names("Names"),
		LoadState:        get[string](p, "LoadState"),
		ActiveState:      get[string](p, "ActiveState"),
		SubState:         get[string](p, "SubState"),
		Following:        get[string](p, "Following"),
		UnitFileState:    get[string](p, "UnitFileState"),
		FragmentPath:     get[string](p, "FragmentPath"),
		DropInPaths:      get[[]string](p, "DropInPaths"),
		NeedDaemonReload: get[bool](p, "NeedDaemonReload"),
		InvocationID:     hex.EncodeToString(get[[]byte](p, "InvocationID")),
		ActiveEnter:      p.at("ActiveEnterTimestamp"),
		ActiveFor:        p.activeFor(),
		Result:           get[string](p, "Result"),
		NRestarts:        get[uint32](p, "NRestarts"),
		MainPID:          get[uint32](p, "MainPID"),
		ExecMainStart:    p.at("ExecMainStartTimestamp"),
		ExecMainStatus:   get[int32](p, "ExecMainStatus"),
		ServiceType:      get[string](p, "Type"),
		RemainAfterExit:  get[bool](p, "RemainAfterExit"),
		ConditionResult:  get[bool](p, "ConditionResult"),
		AssertResult:     get[bool](p, "AssertResult"),
		ConditionTime:    p.at("ConditionTimestamp"),
		Queued:           hasJob(p),
		CanStart:         get[bool](p, "CanStart"),
		CanReload:        get[bool](p, "CanReload"),
		Triggers:         p.names("Triggers"),
		TriggeredBy:      p.names("TriggeredBy"),
		Needs:            p.names(needProps...),
		Dependents:       p.names(dependentProps...),
		Requires:         p.names(requireProps...),
		After:            p.names("After"),
	}
}

// ListUnits implements host.Systemd.
func (m *manager) ListUnits(ctx context.Context, patterns ...string) ([]host.UnitStatus, error) {
	ctx, cancel := bounded(ctx, answerBound)
	defer cancel()
	found, err := call(ctx, m, func(c *connection) ([]systemd.UnitStatus, error) {
		return c.ListUnitsByPatternsContext(ctx, nil, patterns)
	})
	if err != nil {
		return nil, fmt.Errorf("list units: %w", err)
	}
	var out []host.UnitStatus
	for _, u := range found {
		out = append(out, listed(u))
	}
	slices.SortFunc(out, func(a, b host.UnitStatus) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// listed is what a listing tells of a unit.
func listed(u systemd.UnitStatus) host.UnitStatus {
	return host.UnitStatus{Name: u.Name, LoadState: u.LoadState, ActiveState: u.ActiveState, SubState: u.SubState, Following: u.Followed}
}
