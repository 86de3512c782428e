package kind

import (
	"errors"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Options are what kinds need of the engine's.
type Options struct {
	Fetcher Fetcher
	Issuer  Issuer
	Prober  Prober
	Images  Images
	Nodes   Nodes
	// SelfSigned makes a serving key pair; ServingValid says whether one serves.
	SelfSigned   func(names []string, now time.Time) (certPEM, keyPEM []byte, err error)
	ServingValid func(certPEM, keyPEM []byte, names []string, now time.Time) (ok bool, reason string)
	// Mounts is what is mounted, asked for once; may be nil.
	Mounts func() ([]host.Mount, error)
	// Offline: the host is a root directory, not a running machine. Live changes
	// are deferred.
	Offline bool
	// NoFetch: artifacts that are missing are deferred (offline without --fetch).
	NoFetch bool
	// TakeOver makes this owner's what another contract wants otherwise; without it
	// that is refused.
	TakeOver bool
	// Contents are what files held when an earlier plan of the same process read
	// them; may be nil.
	Contents *Contents
	// Booting: systemd has yet to start what a boot starts. No start is awaited here: it
	// would wait for this run, and this run for it.
	Booting bool
	// Returning: the state is the last good one, with which the machine has joined.
	Returning bool
	// Kept are the credentials that the change replaced which is taken back, by
	// resource and holder.
	Kept map[desired.ID]map[string]Credential
}

// ErrNoProvider is a resource for which the engine was given nothing.
var ErrNoProvider = errors.New("this engine was built without a provider for it")

// View is one comparison of a state with a machine.
type View struct {
	Options
	Host   host.Host
	State  *desired.State
	Ledger *ledger.Ledger

	kinds map[string]Kind

	mu    sync.Mutex
	tasks []*Task
	byID  map[desired.ID]*Task
	// covered are the resources that are looked at, and what of the ledger; nil is all.
	covered map[desired.ID]bool
	// content is what each path of the state will hold, where it is known.
	// inDir are those paths by their directories: each unit looks into many.
	content map[string]*Change
	inDir   map[string]map[string]bool
	// changed are the paths that the tree's part of the plan changes, deleted those
	// that it deletes.
	changed, deleted map[string]bool
	// removed are the names that nobody wants any more, withheld those that stay as somebody
	// else made them.
	removed, withheld map[string]bool
	// uncovered are directories of which this plan takes a mount away.
	uncovered map[string]bool
	// vanished are names of the ledger that are neither there nor wanted, left those
	// that this owner wants no more and that are not only berth's.
	vanished, left []string
	real           map[string]string
	// going are links that this plan takes away, with where they lead.
	going map[string]string
	// described are files as they were when the plan began.
	described map[string]*host.Info
	// listed are directories as they were when the plan first asked; nil when the plan
	// is made and changes begin.
	listed map[string]func() ([]string, error)
	shared map[string]any
	// Owed is a run of this boot that was cut off; nil where there is none. What one owed to
	// what ran before a boot is no longer owed.
	Owed *ledger.Run
	// demanded are units that have to start anew, with the reason of each task.
	demanded map[desired.ID]map[*Task]string
}

// NewView has a task for each resource of a state.
func NewView(o Options, kinds map[string]Kind, h host.Host, st *desired.State, l *ledger.Ledger) *View {
	n := len(st.Resources)
	v := &View{Options: o, kinds: kinds, Host: h, State: st, Ledger: l, going: goingLinks(st, l), tasks: make([]*Task, 0, n), byID: make(map[desired.ID]*Task, n),
		content: make(map[string]*Change, n), inDir: map[string]map[string]bool{}, changed: map[string]bool{}, deleted: map[string]bool{},
		real: map[string]string{}, removed: map[string]bool{}, withheld: map[string]bool{}, uncovered: map[string]bool{}, shared: map[string]any{},
		demanded: map[desired.ID]map[*Task]string{}, described: make(map[string]*host.Info, n), listed: map[string]func() ([]string, error){}}
	if o.Contents != nil {
		o.Contents.expect(n)
	}
	for _, r := range st.Resources {
		v.Add(&Task{ID: r.ID(), Base: r.Order()})
	}
	return v
}

// Add enters a task that no resource of the state stands for, or one that does.
func (v *View) Add(t *Task) *Task {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.Base == nil {
		t.Base = &desired.Base{}
	}
	v.tasks = append(v.tasks, t)
	if v.byID[t.ID] == nil {
		v.byID[t.ID] = t
	}
	return t
}

// Tasks are all tasks, those of the state first, in its order.
func (v *View) Tasks() []*Task {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.tasks)
}

// Task is the one of an id, or nil.
func (v *View) Task(id desired.ID) *Task {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byID[id]
}

// NamesOf are the ids of the ledger that stand for a resource.
func (v *View) NamesOf(r desired.Resource) []string {
	if k := v.kinds[r.Kind()]; k != nil {
		return k.Names(v, r)
	}
	return nil
}

// DirsOf are the directories without which a resource has no place.
func (v *View) DirsOf(r desired.Resource) []string {
	var out []string
	for _, p := range r.FilePaths() {
		out = append(out, path.Dir(v.Real(p)))
	}
	for _, p := range r.DirectoryPaths() {
		out = append(out, v.Real(p))
	}
	return out
}

// AskedOf is what tells two wishes for a resource apart where its content does not.
func (v *View) AskedOf(r desired.Resource) string {
	if k, ok := v.kinds[r.Kind()].(Asker); ok {
		return k.Asked(r)
	}
	return ""
}

// InputsOf are the files of a resource that programs read when they start.
func (v *View) InputsOf(id desired.ID) (files, regenerated []string) {
	r := v.State.Lookup(id)
	if r == nil {
		return nil, nil
	}
	if k, ok := v.kinds[r.Kind()].(Input); ok {
		return k.Inputs(v, r)
	}
	return nil, nil
}

// IsDownload says whether the state has a path downloaded.
func (v *View) IsDownload(path string) bool {
	return slices.ContainsFunc(v.State.Resources, func(r desired.Resource) bool {
		d, ok := v.kinds[r.Kind()].(Downloader)
		return ok && slices.Contains(d.Downloads(v, r), path)
	})
}

// Shared is what a kind keeps for all its resources of one run, made by the first
// who asks.
func (v *View) Shared(key string, first func() any) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shared[key] == nil {
		v.shared[key] = first()
	}
	return v.shared[key]
}

// Demand notes for a task that a unit which runs has to start anew though nothing that it
// was started with changes. Units are observed after all who may demand it.
func (v *View) Demand(t *Task, unit desired.ID, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.demanded[unit] == nil {
		v.demanded[unit] = map[*Task]string{}
	}
	v.demanded[unit][t] = reason
}

// Demanded says why a unit has to start anew; "" if nobody demanded it. Of several reasons
// it is always the same.
func (v *View) Demanded(unit desired.ID) (reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.demanded[unit] {
		if reason == "" || r < reason {
			reason = r
		}
	}
	return reason
}

// Expect notes what a path will hold when the plan is done.
func (v *View) Expect(q *Change) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.content[q.Path] = q
	dir := path.Dir(q.Path)
	if v.inDir[dir] == nil {
		v.inDir[dir] = map[string]bool{}
	}
	v.inDir[dir][q.Path] = true
}

// Expected returns what a path will hold, or nil where the plan says nothing.
func (v *View) Expected(path string) *Change {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.content[path]
}

// ExpectedIn are the paths in a directory of which the plan says what they will hold.
func (v *View) ExpectedIn(dir string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.inDir[dir]) == 0 {
		return nil // as in most that a unit looks into
	}
	return slices.Sorted(maps.Keys(v.inDir[dir]))
}

// NoteChanges fixes which paths change, before the next pass.
func (v *View) NoteChanges() {
	for _, t := range v.Tasks() {
		for _, q := range t.Changes {
			v.changed[q.Path] = q.Type != ledger.Attributes
			v.deleted[q.Path] = q.Type == ledger.Gone
		}
		for _, name := range t.Regenerated {
			v.changed[name] = true
		}
	}
}

// Changes says whether the passes before this one change what a path holds.
func (v *View) Changes(path string) bool { return v.changed[path] }

// Deletes says whether they delete it.
func (v *View) Deletes(path string) bool { return v.deleted[path] }

// ChangedNames are all paths that they change, in order.
func (v *View) ChangedNames() []string {
	var out []string
	for name, changes := range v.changed {
		if changes {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Vacate notes that a name goes which the ledger does not speak of: the directory
// that it is in may go, too.
func (v *View) Vacate(name string) { v.remove(name) }

// Uncover notes that the plan takes away what is mounted on a directory: what is
// seen there now is not what it holds.
func (v *View) Uncover(dir string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.uncovered[dir] = true
}

// Uncovers says whether Uncover was called for a directory.
func (v *View) Uncovers(dir string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.uncovered[dir]
}

// Leave notes that this owner wants an id no more which others still want, or
// which was there before it.
func (v *View) Leave(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = append(v.left, id)
}

// Reclaim takes back that a name was left, and kept: a kind takes away what stands there.
func (v *View) Reclaim(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = slices.DeleteFunc(v.left, func(left string) bool { return left == name })
	if t := v.byID[removalID(name, v.Ledger.Entries[name])]; t != nil {
		t.Kept = nil
	}
}

// Vanish notes an id of the ledger that is neither there nor wanted.
func (v *View) Vanish(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.vanished = append(v.vanished, id)
}

// Left are the ids that Leave was called for.
func (v *View) Left() []string { return v.left }

// Vanished are the ids that Vanish was called for.
func (v *View) Vanished() []string { return v.vanished }

// Lstat describes a path, nil if there is nothing. Below a link that goes there is nothing:
// a directory takes its place.
func (v *View) Lstat(path string) (*host.Info, error) {
	if v.belowGoing(path) {
		return nil, nil
	}
	return ledger.Lstat(v.Host, path)
}

// ReadFile reads a file; ok is false if there is none.
func (v *View) ReadFile(path string) (data []byte, ok bool, err error) {
	return ledger.ReadFile(v.Host, path)
}
