package kind

import (
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
)

// Forecast is what the tree will be when the plan is done. What a path will hold is known as
// soon as it is planned; what changes, goes or has to start anew when the pass that plans it is
// over, so that all of a later pass see the same.
type Forecast struct {
	mu sync.Mutex
	// content is what each path of the state will hold, where it is known.
	// inDir are those paths by their directories: each unit looks into many.
	content map[string]*Change
	inDir   map[string]map[string]bool
	// becomes are the paths that the passes before change, with what they become.
	becomes map[string]ledger.Type
	// demanded are units that have to start anew, with the reason.
	demanded map[desired.ID]string
	// withheld are names that stay as somebody else made them.
	withheld map[string]bool
	// uncovered are directories of which this plan takes a mount away.
	uncovered map[string]bool
	// vanished are names of the ledger that are neither there nor wanted.
	vanished []string
}

func forecast(names int) Forecast {
	return Forecast{content: make(map[string]*Change, names), inDir: map[string]map[string]bool{}, becomes: map[string]ledger.Type{},
		withheld: map[string]bool{}, uncovered: map[string]bool{}}
}

// Expect notes what a path will hold when the plan is done.
func (f *Forecast) Expect(q *Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content[q.Path] = q
	dir := path.Dir(q.Path)
	if f.inDir[dir] == nil {
		f.inDir[dir] = map[string]bool{}
	}
	f.inDir[dir][q.Path] = true
}

// Expected returns what a path will hold, or nil where the plan says nothing.
func (f *Forecast) Expected(path string) *Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.content[path]
}

// ExpectedIn are the paths in a directory of which the plan says what they will hold.
func (f *Forecast) ExpectedIn(dir string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.inDir[dir]) == 0 {
		return nil // as in most that a unit looks into
	}
	return slices.Sorted(maps.Keys(f.inDir[dir]))
}

// note takes up what tasks change, before the next pass.
func (f *Forecast) note(tasks []*Task) {
	f.demanded = map[desired.ID]string{}
	for _, t := range tasks {
		for _, q := range t.Changes {
			f.becomes[q.Path] = q.Type
		}
		for _, name := range t.Regenerated {
			if !f.Deletes(name) {
				f.becomes[name] = ledger.File
			}
		}
		if d := t.Demand; d.Unit != "" && (f.demanded[d.Unit] == "" || d.Reason < f.demanded[d.Unit]) {
			f.demanded[d.Unit] = d.Reason
		}
	}
}

// withhold takes back what a task planned.
func (f *Forecast) withhold(changes []*Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range changes {
		delete(f.content, q.Path)
		delete(f.inDir[path.Dir(q.Path)], q.Path)
		delete(f.becomes, q.Path)
		f.withheld[q.Path] = true
	}
}

// Changes says whether the passes before this one change what a path holds.
func (f *Forecast) Changes(path string) bool {
	as, changes := f.becomes[path]
	return changes && as != ledger.Attributes
}

// Deletes says whether they delete it.
func (f *Forecast) Deletes(path string) bool { return f.becomes[path] == ledger.Gone }

// ChangedNames are all paths that they change, in order.
func (f *Forecast) ChangedNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.becomes)), func(name string) bool { return !f.Changes(name) })
}

// Vanished are names of the ledger that are neither there nor wanted.
func (f *Forecast) Vanished() []string { return f.vanished }

// Demanded says why a unit has to start anew; "" if no pass before this one demands it. Of
// several reasons it is always the same.
func (f *Forecast) Demanded(unit desired.ID) (reason string) { return f.demanded[unit] }

// Withheld says that a path stays as somebody else made it: nothing follows from it.
func (f *Forecast) Withheld(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.withheld[path]
}

// Uncover notes that the plan takes away what is mounted on a directory: what is
// seen there now is not what it holds.
func (f *Forecast) Uncover(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uncovered[dir] = true
}

// Uncovers says whether Uncover was called for a directory.
func (f *Forecast) Uncovers(dir string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.uncovered[dir]
}
