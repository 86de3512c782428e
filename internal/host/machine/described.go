package machine

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/berth-dev/berth/internal/host"
)

// descriptions are units as systemd has described them. It tells each connection of its
// own of every change of a unit, before it answers what is asked after the change: what
// it has not told of is as it was. An agent that looks at fifty units asks for all of
// each but once.
type descriptions struct {
	mu sync.Mutex
	of map[dbus.ObjectPath]*description
}

// description is what was answered at a time; status is empty until the answer comes.
type description struct {
	status host.UnitStatus
	at     time.Time
}

// begin notes that a unit is going to be asked for.
func (d *descriptions) begin(name string) *description {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of = map[dbus.ObjectPath]*description{}
	}
	begun := &description{}
	d.of[objectOf(name)] = begun
	return begun
}

// end keeps the answer, unless something has changed since begin. Of a unit that is not
// loaded, and of another name than its own, nothing would be told; none is no answer. Nor is
// it told that somebody resets what a unit failed of and how often it was restarted, where
// its state stays (seen with 252, in the pause of a crash loop).
func (d *descriptions) end(name string, begun *description, st host.UnitStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch path := objectOf(name); {
	case d.of[path] != begun:
	case st.LoadState != "loaded" || st.ID != name || st.NRestarts > 0 || st.Result != "" && st.Result != "success":
		delete(d.of, path)
	default:
		begun.status, begun.at = ownStrings(st), time.Now()
	}
}

// known is the description of a unit; nil where there is none.
func (d *descriptions) known(name string) *description {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.of[objectOf(name)]; k != nil && k.status.Name != "" {
		return k
	}
	return nil
}

// outdate forgets the unit of an object; "" is all units.
func (d *descriptions) outdate(path dbus.ObjectPath) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if path == "" {
		clear(d.of)
		return
	}
	delete(d.of, path)
}

// untold are the properties of whose change systemd tells nobody who does not ask: files
// that have changed, and a drop-in that it wrote itself (systemctl set-property).
var untold = []string{"NeedDaemonReload", "DropInPaths"}

// asBefore is a unit of which nothing was told since it was described.
func (m *manager) asBefore(ctx context.Context, name string) (host.UnitStatus, bool) {
	k := m.described.known(name)
	if k == nil {
		return host.UnitStatus{}, false
	}
	p, err := call(ctx, m, func(c *connection) (props, error) {
		return c.single(ctx, name, unitIface, untold)
	})
	if err != nil || m.described.known(name) != k {
		return host.UnitStatus{}, false
	}
	st := ownStrings(k.status)
	st.NeedDaemonReload, st.DropInPaths = get[bool](p, "NeedDaemonReload"), get[[]string](p, "DropInPaths")
	if st.ActiveFor > 0 {
		st.ActiveFor += time.Since(k.at)
	}
	return st, true
}

// ownStrings copies what a status consists of: its strings are parts of a message, and
// its lists its caller's.
func ownStrings(st host.UnitStatus) host.UnitStatus {
	v := reflect.ValueOf(&st).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i).Addr().Interface().(type) {
		case *string:
			*f = strings.Clone(*f)
		case *[]string:
			*f = slices.Clone(*f)
			for i, s := range *f {
				(*f)[i] = strings.Clone(s)
			}
		}
	}
	return st
}
