package converge

import (
	"io/fs"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

func (p *planning) file(t *task, f *desired.File) error {
	q := &put{kind: putFile, path: f.Path, content: f.Content,
		attrs: host.Attributes{Mode: f.Mode.Perm(), UID: f.UID, GID: f.GID}}
	if f.Life == desired.Transient && p.provided(f.Until) {
		return p.end(t, f)
	}
	info, err := lstat(p.h, f.Path)
	if err != nil {
		return err
	}
	if f.Life == desired.Seed && info != nil {
		return nil
	}
	return p.want(t, q, info)
}

// want plans a file of given content.
func (p *planning) want(t *task, q *put, info *host.Info) error {
	p.expect(q)
	reason, have, err := difference(p.h, q.path, info, q.content.Data(), q.attrs)
	if err != nil || reason == "" {
		return err
	}
	if err := p.mayPut(q, info); err != nil {
		return err
	}
	t.puts = append(t.puts, q)
	verb := VerbUpdate
	if info == nil {
		verb = VerbCreate
	}
	t.act(verb, reason+q.takenOver(), DisruptNone)
	switch {
	case info == nil:
		t.actions[len(t.actions)-1].Diff = unified(q.path, nil, q.content)
	case have != nil:
		old := secretIfNarrow(have, info.Mode)
		t.actions[len(t.actions)-1].Diff = unified(q.path, &old, q.content)
	}
	return nil
}

// provided says whether a transient file's end has come: its resource is in
// place, or this plan puts it there.
func (p *planning) provided(id desired.ID) bool {
	t := p.byID[id]
	return t != nil && len(t.deferred) == 0
}

// end plans the deletion of a transient file.
func (p *planning) end(t *task, f *desired.File) error {
	info, err := lstat(p.h, f.Path)
	if err != nil || info == nil {
		return err
	}
	if len(p.led.others(f.Path, p.st.Owner)) > 0 {
		if p.led.owns(f.Path, p.st.Owner) {
			p.leave(f.Path) // the last to need it deletes it
		}
		return nil
	}
	q := &put{kind: putDelete, path: f.Path}
	if err := p.mayPut(q, info); err != nil {
		return err
	}
	q.foreign, q.forget = false, true
	t.puts = append(t.puts, q)
	t.act(VerbDelete, "no longer needed: "+string(f.Until)+" is in place", DisruptNone)
	return nil
}

func (p *planning) directory(t *task, d *desired.Directory) error {
	info, err := lstat(p.h, d.Path)
	if err != nil {
		return err
	}
	q := &put{kind: putDir, path: d.Path, attrs: host.Attributes{Mode: d.Mode.Perm(), UID: d.UID, GID: d.GID}}
	verb, reason := VerbUpdate, ""
	switch {
	case info == nil:
		verb, reason = VerbCreate, "absent"
	case !info.Mode.IsDir():
		return &fs.PathError{Op: "make directory", Path: d.Path, Err: errNotDirectory(describeType(p.h, d.Path, info))}
	default:
		reason = attributeDifference(info, q.attrs)
	}
	if reason == "" {
		return nil
	}
	if err := p.mayPut(q, info); err != nil {
		return err
	}
	t.puts = append(t.puts, q)
	t.act(verb, reason+q.takenOver(), DisruptNone)
	return nil
}

type errNotDirectory string

func (e errNotDirectory) Error() string { return "there is " + string(e) + " already" }

func (p *planning) link(t *task, l *desired.Link) error {
	return p.wantLink(t, &put{kind: putLink, path: l.Path, target: l.Target}, VerbUpdate)
}

func (p *planning) wantLink(t *task, q *put, verb Verb) error {
	info, err := lstat(p.h, q.path)
	if err != nil {
		return err
	}
	p.expect(q)
	reason := "absent"
	if info != nil {
		reason = "is " + describeType(p.h, q.path, info) + ", want a link to " + q.target
		if target, err := p.h.Readlink(q.path); err == nil && target == q.target {
			return nil
		}
	} else if verb == VerbUpdate {
		verb = VerbCreate
	}
	if err := p.mayPut(q, info); err != nil {
		return err
	}
	t.puts = append(t.puts, q)
	t.act(verb, reason+q.takenOver(), DisruptNone)
	return nil
}
