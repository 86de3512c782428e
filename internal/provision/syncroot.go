package provision

import (
	"time"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/host"
)

// syncRoot makes durable what others wrote on the root file system before this
// run, without being waited for. cloud-init syncs nothing: a power cut within
// the kernel's half a minute would leave an empty network configuration, which
// cloud-init does not write a second time.
func (r *run) syncRoot() {
	s, ok := r.Host.(host.Syncer)
	if !ok {
		return
	}
	r.synced = make(chan struct{})
	span := converge.Span{ID: "root file system", Verb: "sync", Phase: "wait", Start: r.Host.Now()}
	go func() {
		defer close(r.synced)
		if err := converge.Safely(func() error { return s.SyncFS("/") }); err != nil {
			span.Error = err.Error()
			r.log.Warn("what was written before this run may not be durable", "error", err)
		}
		span.End = r.Host.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.spans = append(r.spans, span)
	}()
}

// syncBudget bounds awaitSync.
const syncBudget = 5 * time.Second

// awaitSync keeps success from being told before it would outlive a power
// cut. As a rule syncRoot has ended long before. A disk that is busier than the
// budget makes no failure of a node.
func (r *run) awaitSync() {
	if r.synced == nil {
		return
	}
	late := time.NewTimer(syncBudget)
	defer late.Stop()
	select {
	case <-r.synced:
	case <-late.C:
		r.log.Warn("what was written before this run is still on its way to the disk")
	}
}
