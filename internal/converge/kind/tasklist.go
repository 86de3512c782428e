package kind

import (
	"slices"
	"sync"

	"github.com/berth-dev/berth/internal/desired"
)

// TaskList is what there is to do: a task for each resource of the state, and those of what
// nobody wants any more.
type TaskList struct {
	mu    sync.Mutex
	tasks []*Task
	byID  map[desired.ID]*Task
}

func taskList(n int) TaskList {
	return TaskList{tasks: make([]*Task, 0, n), byID: make(map[desired.ID]*Task, n)}
}

// Add enters a task that no resource of the state stands for, or one that does.
func (l *TaskList) Add(t *Task) *Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Base == nil {
		t.Base = &desired.Base{}
	}
	l.tasks = append(l.tasks, t)
	if l.byID[t.ID] == nil {
		l.byID[t.ID] = t
	}
	return t
}

// Tasks are all tasks, those of the state first, in its order.
func (l *TaskList) Tasks() []*Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tasks)
}

// Task is the one of an id, or nil.
func (l *TaskList) Task(id desired.ID) *Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id]
}

// Reclaim takes back that a name was left, and kept: a kind takes away what stands there. kept
// says that it was, as somebody else's.
func (l *TaskList) Reclaim(name string) (kept bool) {
	for _, t := range l.Tasks() {
		if left := slices.Index(t.Leaves, name); left >= 0 {
			kept = kept || len(t.Kept) > 0
			t.Leaves, t.Kept = slices.Delete(t.Leaves, left, left+1), nil
		}
	}
	return kept
}
