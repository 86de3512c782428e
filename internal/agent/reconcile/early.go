package reconcile

import (
	"context"
	"sync"
)

// early returns what is called when all that a document asks for is done and durable, while
// its units have yet to stay up and the document is yet to be kept as the last good one.
func (r *Reconciler) early(t *Target) func() {
	say := r.sayEarly(t)
	return sync.OnceFunc(func() {
		r.o.Log.Debug("a document is durable", "checksum", t.Checksum)
		say()
	})
}

// sayEarly returns what has the Node say that a document is in force while the engine has
// yet to see its units stay up, and to keep it (docs/decisions/0012). That is not said
// before it is proved where there is nothing to go back to, where the document has failed
// before, and where the agent itself is still to be updated.
func (r *Reconciler) sayEarly(t *Target) func() {
	_, failed := r.said[applying]
	r.mu.Lock()
	former := r.status
	r.mu.Unlock()
	if !r.o.Published || t.Agent != nil || r.record.Half || failed || former.checksum == "" || former.checksum == t.Checksum {
		return func() {}
	}
	return func() {
		r.setStatus(func(s *nodeStatus) { s.checksum, s.labels, s.former = t.Checksum, r.o.Labels(t), &former })
	}
}

// sayFormer takes back what was said too early.
func (r *Reconciler) sayFormer() {
	r.setStatus(func(s *nodeStatus) {
		if s.former != nil {
			s.checksum, s.labels, s.former = s.former.checksum, s.former.labels, nil
		}
	})
}

// deny has the Node say of the last good document what it may still say of one that is
// not in force: the process before this one may have been killed when it had said so too
// early.
func (r *Reconciler) deny(ctx context.Context, d *Document) {
	if !r.o.Published {
		return
	}
	last := r.lastGood(ctx)
	if last == nil || last.Sum == d.Sum {
		return
	}
	r.setStatus(func(s *nodeStatus) {
		s.instead, s.denied = &nodeStatus{checksum: last.Checksum, labels: r.o.Labels(last)}, d.Checksum
	})
}
