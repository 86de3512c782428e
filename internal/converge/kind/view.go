package kind

import (
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Options are what kinds need of the engine's.
type Options struct {
	Providers
	Return
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
	// Contents are what files held when an earlier plan of the same process read them.
	Contents *Contents
}

// Return is the way back to the last good contract; zero on the way to another.
type Return struct {
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

// View is one comparison of a state with a machine: what is there, what of the state is looked
// at, what there is to do, what will be there then, and whose it is.
type View struct {
	Options
	Machine
	Scope
	TaskList
	Forecast
	Claims
	// Owed is a run of this boot that was cut off; nil where there is none. What one owed to
	// what ran before a boot is no longer owed.
	Owed *ledger.Run
	// Kinds are all that there are, by name.
	Kinds map[string]Kind

	mu     sync.Mutex
	shared map[string]any
}

// NewView has a task for each resource of a state.
func NewView(o Options, kinds map[string]Kind, h host.Host, st *desired.State, l *ledger.Ledger) *View {
	n := len(st.Resources)
	v := &View{Options: o, Machine: machine(o, h, st, l), Scope: Scope{State: st}, TaskList: taskList(n), Forecast: forecast(n),
		Kinds: kinds, shared: map[string]any{}}
	v.Claims = claims(o, &v.Machine, st.Owner)
	o.Contents.expect(n)
	for _, r := range st.Resources {
		v.Add(&Task{ID: r.ID(), Base: r.Order()})
	}
	return v
}

// NamesOf are the ids of the ledger that stand for a resource.
func (v *View) NamesOf(r desired.Resource) []string {
	if k := v.Kinds[r.Kind()]; k != nil {
		return k.Names(v, r)
	}
	return nil
}

// DirsOf are the directories without which a resource has no path.
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
	if k, ok := v.Kinds[r.Kind()].(Asker); ok {
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
	if k, ok := v.Kinds[r.Kind()].(Input); ok {
		return k.Inputs(v, r)
	}
	return nil, nil
}

// IsDownload says whether the state has a path downloaded.
func (v *View) IsDownload(path string) bool {
	return slices.ContainsFunc(v.State.Resources, func(r desired.Resource) bool {
		d, ok := v.Kinds[r.Kind()].(Downloader)
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

// NoteChanges has the forecast take up what the tasks are now.
func (v *View) NoteChanges() { v.note(v.Tasks()) }

// Withhold takes back what a task planned.
func (v *View) Withhold(t *Task, report bool) {
	v.withhold(t.Changes)
	t.Withhold(report)
}
