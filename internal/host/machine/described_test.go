package machine

import (
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/berth-dev/berth/internal/host"
)

// TestDescriptions: what was told of a unit meanwhile, or of any, makes an answer one of
// before, also where it comes later.
func TestDescriptions(t *testing.T) {
	const name = "a.service"
	loaded := host.UnitStatus{Name: name, ID: name, LoadState: "loaded", After: []string{"b.service"}}
	for _, c := range []struct {
		what    string
		st      host.UnitStatus
		outdate []dbus.ObjectPath
		known   bool
	}{
		{"nothing", loaded, nil, true},
		{"another unit", loaded, []dbus.ObjectPath{objectOf("b.service")}, true},
		{"the unit", loaded, []dbus.ObjectPath{objectOf(name)}, false},
		{"all", loaded, []dbus.ObjectPath{""}, false},
		{"not loaded", host.UnitStatus{Name: name, ID: name, LoadState: "not-found"}, nil, false},
		{"an alias", host.UnitStatus{Name: name, ID: "real.service", LoadState: "loaded"}, nil, false},
		{"restarted", host.UnitStatus{Name: name, ID: name, LoadState: "loaded", Result: "success", NRestarts: 1}, nil, false},
		{"in the pause of a crash loop", host.UnitStatus{Name: name, ID: name, LoadState: "loaded", Result: "exit-code"}, nil, false},
		{"well", host.UnitStatus{Name: name, ID: name, LoadState: "loaded", Result: "success"}, nil, true},
		{"no answer", host.UnitStatus{}, nil, false},
	} {
		for _, when := range []string{"before the answer", "after it"} {
			var d descriptions
			begun := d.begin(name)
			told := func(now string) {
				for _, path := range c.outdate {
					if when == now {
						d.outdate(path)
					}
				}
			}
			told("before the answer")
			d.end(name, begun, c.st)
			told("after it")
			if k := d.known(name); (k != nil) != c.known {
				t.Errorf("%s, %s: known %v", c.what, when, k)
			}
			if d.known("b.service") != nil {
				t.Error("another unit is known")
			}
		}
	}
	var d descriptions
	first := d.begin(name)
	d.end(name, d.begin(name), loaded)
	if d.end(name, first, host.UnitStatus{}); d.known(name) == nil {
		t.Error("an earlier question without an answer takes a later one's away")
	}
	if k := d.known(name); time.Since(k.at) > time.Minute || &k.status.After[0] == &loaded.After[0] {
		t.Errorf("%+v", k)
	}
}
