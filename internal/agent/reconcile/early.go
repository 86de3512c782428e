package reconcile

// early returns what has the Node say that a document is in force while its units have
// yet to stay up (docs/decisions/0012); nil where that is not said before it is proved:
// where there is nothing to go back to, where the document has failed before, and where
// the agent itself is still to be updated.
func (r *Reconciler) early(t *Target) func() {
	_, failed := r.said[applying]
	if !r.o.Published || t.Agent != nil || r.half || failed {
		return nil
	}
	r.mu.Lock()
	former := r.face
	r.mu.Unlock()
	if former.checksum == "" || former.checksum == t.Checksum {
		return nil
	}
	return func() {
		r.show(func(f *face) { f.checksum, f.labels, f.former = t.Checksum, r.o.Marks(t), &former })
	}
}

// sayFormer takes back what was said too early.
func (r *Reconciler) sayFormer() {
	r.show(func(f *face) {
		if f.former != nil {
			f.checksum, f.labels, f.former = f.former.checksum, f.former.labels, nil
		}
	})
}
