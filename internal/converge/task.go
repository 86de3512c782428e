package converge

import (
	"context"
	"io/fs"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// task is what one resource needs. A converged resource's task has no actions
// and none of the functions.
type task struct {
	id      desired.ID
	base    *desired.Base
	actions []Action
	// blocked is why the actions can't be done at all.
	blocked error
	// deferred can't be done here (Options.Offline).
	deferred []Action
	remarks  []string
	// kept is what a plan leaves that nobody wants any more.
	kept []string
	// stage does what may fail and shows nothing; it may add puts.
	stage func(ctx context.Context, t *task) error
	// staged orders stage functions: ids whose stage must have succeeded.
	staged []desired.ID
	// staging is what a download was.
	staging *Staged
	// puts are the names that commit changes, in order.
	puts []*put
	// before runs between stage and commit: stopping what is about to lose its
	// definition.
	before func(ctx context.Context) error
	// favour runs beside the live work; nothing waits for it and its failure is a
	// remark.
	favour func(ctx context.Context) error
	// remade are paths that live makes anew; it uses their temporary names.
	remade []string
	// live changes what runs, after all puts are durable.
	live func(ctx context.Context) error
	// settle is bookkeeping of a converged resource, at the end of an apply.
	settle func() error
}

func (t *task) act(v Verb, reason string, d Disruption) {
	t.actions = append(t.actions, t.action(v, reason, d))
}

// block plans what can't be done: the plan shows it with the reason, and apply
// fails with err before anything changes.
func (t *task) block(v Verb, reason, why string, err error) {
	t.act(v, reason, DisruptNone)
	t.actions[len(t.actions)-1].Blocked = why
	t.blocked = &ActionError{ID: t.id, Verb: VerbCheck, Field: t.base.Field, Err: err}
}

func (t *task) postpone(v Verb, reason string) {
	t.deferred = append(t.deferred, t.action(v, reason, DisruptNone))
}

func (t *task) action(v Verb, reason string, d Disruption) Action {
	return Action{ID: t.id, Verb: v, Reason: reason, Disruption: d, Field: t.base.Field}
}

// verb is the word for the task in the timeline.
func (t *task) verb() Verb {
	if len(t.actions) == 0 {
		return VerbCheck
	}
	return t.actions[len(t.actions)-1].Verb
}

// stageVerb is the word for what stage does: of a unit it prepares the links.
func (t *task) stageVerb() Verb {
	if len(t.actions) == 0 {
		return VerbCheck
	}
	return t.actions[0].Verb
}

// putKind is what becomes of a name.
type putKind int

const (
	putFile putKind = iota
	putLink
	putDir
	putDelete
	// putAttributes sets mode and owner of what is there.
	putAttributes
)

// put is one name in the tree that commit changes.
type put struct {
	kind    putKind
	path    string
	content desired.Content
	target  string
	attrs   host.Attributes
	// prepared: another has written the temporary file.
	prepared bool
	// stored is the sum of the original that becomes the content; it is too large
	// to be held.
	stored string
	// late puts make something start at boot: they follow when all others are
	// durable.
	late bool
	// foreign: what is there now was not berth's and is kept as the original.
	foreign bool
	// modeWas: of what is there, mode and owner are berth's and kept already.
	modeWas bool
	// from are other owners that lose the name to this one.
	from []desired.Owner
	// asked is what the ledger remembers instead of content; see entry.Asked.
	asked string
	// parent is a directory on the way to another put.
	parent bool
	// forget drops the ledger entry: the name is not berth's any more.
	forget bool
	// generated content is not compared with the ledger.
	generated bool
	seen      *host.Info
}

// temporary says whether commit renames a temporary file to the path.
func (p *put) temporary() bool { return p.kind == putFile || p.kind == putLink }

// sum is what the ledger remembers of the put.
func (p *put) sum() string {
	switch p.kind {
	case putFile:
		switch {
		case p.prepared:
			return ""
		case p.stored != "":
			return p.stored
		}
		return p.content.Sum()
	case putLink:
		return "link:" + p.target
	case putDelete:
		return absent
	}
	return ""
}

func (p *put) mode() fs.FileMode { return p.attrs.Mode }

// inPlace says that what is there stays, with other attributes.
func (p *put) inPlace() bool { return p.kind == putDir || p.kind == putAttributes }

// attributes are what the ledger remembers of mode and owner.
func (p *put) attributes() string {
	if p.kind == putLink || p.kind == putDelete {
		return ""
	}
	return attributesText(p.attrs.Mode, p.attrs.UID, p.attrs.GID)
}
