package converge

import (
	"io/fs"
	"slices"

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
	e, err := a.adopted(r, name, info)
	if err != nil {
		return false, err
	}
	a.led.Entries[name] = e
	return true, nil
}

func (a *applying) adopted(r desired.Resource, name string, info *host.Info) (entry, error) {
	e := entry{Adopted: true, Dir: info.Mode.IsDir()}
	if info.Mode&fs.ModeSymlink != 0 {
		target, err := a.h.Readlink(name)
		e.Sum = "link:" + target
		return e, err
	}
	e.Attributes, e.Asked = attributesText(info.Mode, info.UID, info.GID), askedOf(r)
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
		return e.leadsTo(p)
	case putDir, putAttributes:
		return e.Attributes == p.attributes()
	case putFile:
		return e.Sum != "" && e.Sum == p.sum() && e.Attributes == p.attributes()
	}
	return false
}

// complete notes what a name holds of which the ledger does not tell: it came back
// from a lost one. It is as wanted.
func (a *applying) complete(t *task, r desired.Resource, name string) bool {
	e, ok := a.led.Entries[name]
	if !ok || e.Dir || e.InPlace || t.putsTo(name) {
		return false
	}
	q, asked := a.expected(name), askedOf(r)
	switch {
	case asked != "" && (e.Asked == "" || e.Asked != asked && len(e.Owners) == 1):
		e.Asked = asked
	case e.Sum == "" && q != nil && !q.prepared:
		e.Sum, e.Attributes = q.sum(), q.attributes()
	default:
		return false
	}
	a.led.Entries[name] = e
	return true
}

func (t *task) putsTo(name string) bool {
	return slices.ContainsFunc(t.puts, func(q *put) bool { return q.path == name })
}
