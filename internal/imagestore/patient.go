package imagestore

import (
	"sync"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// silence is the error of a call that nobody answers: containerd is away.
func silence(d time.Duration) error { return status.Errorf(codes.Unavailable, "no answer in %s", d) }

// patient is an upload that is given up where containerd owes an answer and gives
// none: the source may be as slow as it likes.
type patient struct {
	contentapi.Content_WriteClient
	// timer gives up. limit is how long containerd may be silent, slack how much
	// longer when it commits.
	timer        *time.Timer
	limit, slack time.Duration

	mu   sync.Mutex
	owed int
	// last: what is owed besides is the end.
	last bool
}

// slowDisk is the least that a disk writes, in bytes per second.
const slowDisk = 4 << 20

// flush is how long a disk may take for what containerd has not written when it
// commits.
func (u *upload) flush() time.Duration { return time.Duration(u.Size/slowDisk) * time.Second }

// Send implements Content_WriteClient.
func (p *patient) Send(m *contentapi.WriteContentRequest) error {
	p.note(1, m.Action == contentapi.WriteAction_COMMIT)
	return p.Content_WriteClient.Send(m)
}

// CloseSend implements Content_WriteClient.
func (p *patient) CloseSend() error {
	p.note(0, true)
	return p.Content_WriteClient.CloseSend()
}

// Recv implements Content_WriteClient.
func (p *patient) Recv() (*contentapi.WriteContentResponse, error) {
	m, err := p.Content_WriteClient.Recv()
	p.note(-1, false)
	return m, err
}

// note changes what is owed, and begins to wait anew.
func (p *patient) note(owed int, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owed = max(0, p.owed+owed)
	p.last = p.last || last
	switch {
	case p.last:
		p.timer.Reset(p.limit + p.slack)
	case p.owed > 0:
		p.timer.Reset(p.limit)
	default:
		p.timer.Stop()
	}
}
