package converge

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// adopt enters a name that is as wanted and that nobody has entered.
func (a *applying) adopt(t *task, r desired.Resource, name string) (bool, error) {
	if a.led.ours(name) || t.putsTo(name) {
		return false, nil
	}
	info, err := lstat(a.h, name)
	if err != nil || info == nil {
		return false, err
	}
	e, err := a.adopted(name, info)
	a.led.Entries[name] = e
	return err == nil, err
}

func (a *applying) adopted(name string, info *host.Info) (entry, error) {
	e := entry{Adopted: true, Dir: info.Mode.IsDir()}
	if info.Mode&fs.ModeSymlink != 0 {
		target, err := a.h.Readlink(name)
		e.Sum = "link:" + target
		return e, err
	}
	e.Attributes = attributesText(info.Mode, info.UID, info.GID)
	if q := a.expected(name); q != nil {
		e.Sum = q.sum()
	}
	return e, nil
}

// adoptedAs says whether a put makes an adopted name what it was when it was
// adopted.
func (e entry) adoptedAs(p *put) bool {
	switch p.kind {
	case putLink:
		return e.Sum == p.sum() || p.late && path.Base(p.target) == path.Base(strings.TrimPrefix(e.Sum, "link:"))
	case putDir, putAttributes:
		return e.Attributes == p.attributes()
	case putFile:
		return e.Sum != "" && e.Sum == p.sum() && e.Attributes == p.attributes()
	}
	return false
}

// complete notes what a name that came back from a lost ledger holds: it is as
// wanted.
func (a *applying) complete(t *task, name string) bool {
	e, ok := a.led.Entries[name]
	q := a.expected(name)
	if !ok || q == nil || q.prepared || e.Sum != "" || e.Dir || e.InPlace || t.putsTo(name) {
		return false
	}
	e.Sum, e.Attributes = q.sum(), q.attributes()
	a.led.Entries[name] = e
	return true
}

func (t *task) putsTo(name string) bool {
	return slices.ContainsFunc(t.puts, func(q *put) bool { return q.path == name })
}
