// Package kind is what the engine asks of a kind of resource, and what a kind
// needs of the engine. Each kind is a package below this one.
//
// A kind sees a run through a View. Most need of it what plans a name of the tree (Want,
// WantLink, RepairAttributes) and the id of what is no name (ClaimLive). Else it is made of parts:
//
//   - Machine: what is there, with memory (Lstat, ReadFile, Listed, Digest, Real);
//   - Scope: the state, and what of it is looked at;
//   - TaskList: what there is to do;
//   - Forecast: what the tree will be then (Expected, Changes, Deletes);
//   - Claims: whose a name or an id is (MayChange).
//
// None of the parts knows View. Of the others, Claims asks the Machine what berth wrote, and the
// Forecast is told what the tasks change. What a kind does stands in its Task: what the plan says
// of it (Findings), what it changes (Record) and how it is done (Work). Questions about the Node
// of the machine are functions (LookAtNode, StartOf).
package kind

import (
	"context"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Pass is when a kind's resources are observed: each pass sees what the passes
// before it plan.
type Pass int

// The passes, in order. What nobody wants any more is planned between Tree and
// Units.
const (
	Credentials Pass = iota
	Tree
	Units
)

// Kind is one kind of resource.
type Kind interface {
	// Name is what desired.Resource.Kind says.
	Name() string
	// Pass is when its resources are observed.
	Pass() Pass
	// Observe compares a resource with the machine and enters in t what there is to
	// do: changes of names, and functions that stage and go live. It only reads.
	Observe(ctx context.Context, v *View, t *Task, r desired.Resource) error
	// Names are the ids of the ledger that stand for a resource: paths, and "kind:"
	// and a name for what is no path. As long as a state has the resource they stay.
	Names(v *View, r desired.Resource) []string
}

// Remover is a kind whose resources leave more than names of the tree: its ids in
// the ledger are "name:…".
type Remover interface {
	// Remove plans the end of an id of this kind that only this owner wanted. What
	// it was before is in e.Was. The id leaves the ledger.
	Remove(ctx context.Context, v *View, t *Task, id string, e ledger.Entry) error
}

// Closer is a kind that looks at a plan as a whole when it is complete.
type Closer interface {
	Close(ctx context.Context, v *View) error
}

// Definer is a kind whose resources consist of names that are resources of other
// kinds.
type Definer interface {
	// Defines says whether a name is a part of what the kind's resources consist of.
	// Those that nobody wants any more go first: what else follows from them depends
	// on what is left.
	Defines(name string) bool
}

// Exempter is a kind of which some resources are no longer compared with what
// stands at their names: berth's part in them is over.
type Exempter interface {
	Exempt(v *View, r desired.Resource) bool
}

// Asker is a kind whose resources are told apart by what is asked for, where their
// content is not known.
type Asker interface {
	// Asked is what a resource asks for. It holds no secret.
	Asked(r desired.Resource) string
}

// Input is a kind whose resources programs read once, when they start: a unit that
// comes after one restarts for it.
type Input interface {
	// Inputs are the files, and those that the machine makes of them.
	Inputs(v *View, r desired.Resource) (files, regenerated []string)
}

// Needer is a kind whose resources can't be compared without others.
type Needer interface {
	// Needs are the resources that are looked at wherever r is.
	Needs(v *View, r desired.Resource) []desired.ID
}

// Follower is a kind whose resources come after more than their order says.
type Follower interface {
	Follows(r desired.Resource) []desired.ID
}

// Describer is a kind that looks at its files with View.Described: all of a plan are
// looked at together.
type Describer interface {
	Describes(v *View, r desired.Resource) []string
}

// Downloader is a kind of files that are downloaded: the state does not tell what they
// hold.
type Downloader interface {
	// Downloads are their paths.
	Downloads(v *View, r desired.Resource) []string
}

// Runner is a kind of what systemd runs.
type Runner interface {
	// Unit is the name of the unit that an id stands for.
	Unit(id desired.ID) string
	// Runs says whether the unit of a resource is to run.
	Runs(r desired.Resource) bool
	// Needed says whether the machine can't do without it.
	Needed(r desired.Resource) bool
}

// Inheriter is a kind whose resources, though they are no names of the tree, may be what
// another program has left.
type Inheriter interface {
	// Before is the state of r before names were there which are inherited with it;
	// known is false where nobody can know it.
	Before(r desired.Resource, names []string) (was string, known bool)
}

// Keeper is a kind of credentials that a change on trial may replace.
type Keeper interface {
	// Replaces is the credential of r that serves and that the plan replaces or takes
	// away, with its holder; nil where there is none.
	Replaces(v *View, r desired.Resource) (holder string, c *Credential, err error)
}

// Learner is a kind that notes what programs hold in a directory of its own.
type Learner interface {
	// Learn is told what large programs hold, by path, which no plan reads.
	Learn(h host.Host, held map[string]ledger.Held) error
}

// Resumer is a kind that completes what a run left which was cut off.
type Resumer interface {
	// Resume comes at the end of the run after it; regenerated are the files whose
	// durability is owed.
	Resume(v *View, regenerated []string) error
	// Unresumed are ids of the ledger of which this run does not do either what the other
	// owes: nobody has asked for anything of them, which tells their owner's next run.
	Unresumed(v *View, regenerated []string) (ids []string)
}
