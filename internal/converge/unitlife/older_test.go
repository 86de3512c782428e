package unitlife_test

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/internal/desired"
)

// older replaces a file by one that was written before it, and has systemd read
// nothing: cp -p, rsync -a and mv do that. systemd goes by the time of a change.
func older(at string) func(*world) {
	return func(w *world) { must(w.Rename(data+"older", at)) }
}

// olderFiles are lives of definitions that change and do not look newer.
var olderFiles = []*life{
	{
		name:    "older definition in place of the first",
		there:   map[string]string{data + "older": rereading("older"), vendor + a: daemon("vendor")},
		running: []string{a}, up: []string{a},
		first:     []desired.Resource{unit(a, "started")},
		meanwhile: older(vendor + a),
		second:    []desired.Resource{unit(a, "started")},
		runs:      [3]counts{{}, {a: 1}}, read: []string{a}, edits: []string{data + "older", vendor + a},
	},
	{
		name: "older drop-in in place of the first",
		there: map[string]string{data + "older": "[Service]\n" + reloading, vendor + a: daemon("vendor"),
			vendor + a + ".d/x.conf": "[Service]\nNice=3\n"},
		running: []string{a}, up: []string{a},
		first:     []desired.Resource{unit(a, "started")},
		meanwhile: older(vendor + a + ".d/x.conf"),
		second:    []desired.Resource{unit(a, "started")},
		runs:      [3]counts{{}, {a: 1}}, read: []string{a}, edits: []string{data + "older", vendor + a + ".d/x.conf"},
	},
	{
		name:    "older definition before berth has seen the first",
		there:   map[string]string{data + "older": rereading("older"), vendor + a: daemon("vendor")},
		running: []string{a}, up: []string{a},
		meanwhile: older(vendor + a),
		second:    []desired.Resource{unit(a, "started")},
		runs:      [3]counts{{}, {a: 1}}, read: []string{a}, edits: []string{data + "older", vendor + a},
	},
	{
		name: "older definition of what was stopped and stays loaded",
		there: map[string]string{data + "older": rereading("older"), vendor + a: daemon("vendor"),
			vendor + b: daemon("vendor", "[Unit]\nWants="+a+"\n")},
		running: []string{a, b}, up: []string{a},
		first: []desired.Resource{unit(a, "started")},
		meanwhile: func(w *world) {
			must(w.StopUnit(tctx, a))
			older(vendor + a)(w)
		},
		second: []desired.Resource{unit(a, "started")},
		runs:   [3]counts{{}, {a: 1}}, read: []string{a}, edits: []string{data + "older", vendor + a},
	},
}

// setBackClocks are lives in which the clock is set back between two changes.
var setBackClocks = []*life{
	{
		name:    "definition that changes when the clock was set back",
		there:   map[string]string{vendor + a: daemon("vendor")},
		running: []string{a}, up: []string{a},
		first:     []desired.Resource{file(admin+a, daemon("1")), unit(a, "started")},
		meanwhile: setBack,
		second:    []desired.Resource{file(admin+a, rereading("2")), unit(a, "started")},
		runs:      [3]counts{{a: 1}, {a: 1}, {a: 1}}, read: []string{a}, repeats: []string{a},
	},
	{
		name:    "drop-in that changes when the clock was set back",
		there:   map[string]string{vendor + a: daemon("vendor")},
		running: []string{a}, up: []string{a},
		first:     []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=1\n"), unit(a, "started")},
		meanwhile: setBack,
		second:    []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=2\n"+reloading), unit(a, "started")},
		runs:      [3]counts{{a: 1}, {a: 1}, {a: 1}}, read: []string{a}, repeats: []string{a},
	},
	{
		name:    "drop-in of a service that is nobody's, when the clock was set back",
		there:   map[string]string{vendor + a: daemon("vendor")},
		running: []string{a}, up: []string{a},
		first:     []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=1\n")},
		meanwhile: setBack,
		second:    []desired.Resource{file(admin+a+".d/x.conf", "[Service]\nNice=2\n"+reloading)},
		read:      []string{a},
	},
}

// setBack sets the clock back.
func setBack(w *world) {
	if w.model != nil {
		w.model.Advance(-24 * time.Hour)
		return
	}
	w.late += backBy
	setClock(-backBy)
}

// backBy is less than what others on the machine take for a day or a certificate's life.
const backBy = 10 * time.Minute

func setClock(by time.Duration) {
	now, err := unix.TimeToTimespec(time.Now().Add(by))
	must(err)
	must(unix.ClockSettime(unix.CLOCK_REALTIME, &now))
}
